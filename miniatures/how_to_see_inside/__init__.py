"""What "How to see inside" builds small, and what it watches PyTorch with.

Mechanism: cite.
"""
