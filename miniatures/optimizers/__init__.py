"""What "Optimizers" builds small, and what it watches PyTorch with.

Mechanism: optim.
"""
