"""What "Out of Python" builds small, and what it watches PyTorch, a compiler and a runtime with.

Mechanism: interpreter.
"""
