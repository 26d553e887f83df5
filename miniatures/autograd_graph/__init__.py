"""What "Recording the graph" builds small, and what it watches PyTorch with.

Mechanism: tape.
Mechanism: derivatives.
"""
