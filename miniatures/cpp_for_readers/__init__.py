"""What "C++ for readers" builds small, and what it watches PyTorch with.

Mechanism: none; programs holds small C++ programs for the page.
"""
