"""The tensor iterator in miniature: its plan, its types, its loops, and the order of a sum.

Mechanism: iterator.
Mechanism: promotion.
Mechanism: loops.
Mechanism: summation.
"""
