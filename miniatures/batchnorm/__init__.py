"""What "BatchNorm" builds small, and what it watches PyTorch with.

Mechanism: norm.
Mechanism: sync.
"""
