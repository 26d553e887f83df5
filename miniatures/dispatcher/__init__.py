"""What "The dispatcher" builds small, and what it watches PyTorch with.

Mechanism: tables.
"""
