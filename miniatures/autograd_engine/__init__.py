"""What "The autograd engine" builds small, and what it watches PyTorch with.

Mechanism: engine.
"""
