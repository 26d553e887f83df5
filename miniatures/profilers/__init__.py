"""A profiler again: told by PyTorch itself, it writes Chrome's format, and reads it back as a tree.

Mechanism: tracer.
Mechanism: reading.
Mechanism: steps.
"""
