"""What "FSDP2 and DTensor" builds small, and what it watches PyTorch with.

Mechanism: placed.
Mechanism: layer.
"""
