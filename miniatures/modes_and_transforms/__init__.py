"""What "Modes, subclasses, transforms" builds small, and what it watches PyTorch with.

Mechanism: levels.
Mechanism: derivatives.
"""
