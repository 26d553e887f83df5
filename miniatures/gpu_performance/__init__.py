"""What the chapter "GPU performance" builds small, and what it watches PyTorch with."""
