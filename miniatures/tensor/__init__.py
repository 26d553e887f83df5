"""What the chapter "What a tensor is" builds small, and what it watches PyTorch with."""
