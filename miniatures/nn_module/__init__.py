"""What the chapter "nn.Module" builds small, and what it watches PyTorch with."""
