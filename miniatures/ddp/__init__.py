"""What "Distributed data parallel" builds small, and what it watches PyTorch with.

Mechanism: reducer.
"""
