"""What "import torch" builds small, and what it watches PyTorch with.

Mechanism: loader.
Mechanism: base_class.
"""
