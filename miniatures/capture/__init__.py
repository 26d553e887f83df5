"""What "Capturing programs" builds small, and what it watches PyTorch with.

Mechanism: nodes.
Mechanism: tracer.
Mechanism: alias.
"""
