"""What "AOTAutograd" builds small, and what it watches PyTorch with.

Mechanism: functional.
Mechanism: rules.
Mechanism: cut.
"""
