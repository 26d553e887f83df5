"""What "Mixed precision" builds small, and what it watches PyTorch with.

Mechanism: autocast.
"""
