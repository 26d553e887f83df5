"""What the chapter "Inductor" builds small, and what it watches PyTorch with."""
