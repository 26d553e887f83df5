"""What the chapter "CPU performance" builds small, and what it watches PyTorch with."""
