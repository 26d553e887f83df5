"""What "nn.Module" builds small, and what it watches PyTorch with.

Mechanism: module.
Mechanism: checkpoint.
"""
