"""What the chapter "The dispatcher" builds small, and what it watches PyTorch with."""
