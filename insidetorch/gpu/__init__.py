"""CUDA cells: the magic, what was recorded of them, and what goes without a GPU."""
