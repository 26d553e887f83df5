"""What the chapter "Mixed precision" builds small, and what it watches PyTorch with."""
