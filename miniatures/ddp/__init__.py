"""What the chapter "Distributed data parallel" builds small, and what it watches PyTorch with."""
