"""What "Dynamo" builds small, and what it watches PyTorch with.

Mechanism: frames, interpreter, values, calls, bytecode.
    680 lines, since Python's instructions differ from release to release, and three are told.
"""
