"""What the chapter "import torch" builds small, and what it watches PyTorch with."""
