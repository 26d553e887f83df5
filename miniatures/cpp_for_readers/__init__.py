"""What the chapter "C++ for readers" builds small, and what it watches PyTorch with."""
