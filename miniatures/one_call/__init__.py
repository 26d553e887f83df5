"""What "One call" builds small, and what it watches PyTorch with.

Mechanism: call, arguments, rules.
    300 lines, since the parser's rules are a table of types.
"""
