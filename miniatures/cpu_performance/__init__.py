"""What "CPU performance" builds small, and what it watches PyTorch with.

Mechanism: parallel_for.
"""
