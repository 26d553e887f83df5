"""What "What a tensor is" builds small, and what it watches PyTorch with.

Mechanism: reader.
Mechanism: cpp_layout.
"""
