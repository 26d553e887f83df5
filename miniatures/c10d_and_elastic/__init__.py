"""What "c10d, rendezvous, elastic" builds small, and what it watches PyTorch with.

Mechanism: ring.
Mechanism: store.
Mechanism: rendezvous.
"""
