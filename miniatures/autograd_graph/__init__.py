"""What the chapter "Recording the graph" builds small, and what it watches PyTorch with."""
