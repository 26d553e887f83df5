"""What "Inductor" builds small, and what it watches PyTorch with.

Mechanism: fuser, schedule, emit_c.
    370 lines, since a compiler has a front, a scheduler and a back.
"""
