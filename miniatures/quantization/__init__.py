"""What "Quantization: small numbers" builds small, and what it watches PyTorch with.

Mechanism: affine.
"""
