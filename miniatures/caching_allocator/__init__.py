"""The CUDA caching allocator again, in four steps: one stream; sharing; settings; growing segments.

Mechanism: allocator.
Mechanism: sharing.
Mechanism: tuning.
Mechanism: growing.
"""
