"""What the chapter "One call" builds small, and what it watches PyTorch with."""
