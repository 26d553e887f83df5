"""What "CUDA seen from the host" builds small: streams, events and copies; who comes after whom.

Mechanism: streams.
Mechanism: order.
"""
