"""Executing chapters: kernels, their limits, what becomes of them."""
