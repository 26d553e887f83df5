"""What the chapter "Optimizers" builds small, and what it watches PyTorch with."""
