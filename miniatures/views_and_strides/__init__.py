"""What "Views, strides and memory formats" builds small, and what it watches PyTorch with.

Mechanism: strides.
Mechanism: lines.
"""
