"""What "Data and randomness" builds small, and what it watches PyTorch with.

Mechanism: generators.
Mechanism: loader.
"""
