"""Watching PyTorch at work: the operators it runs, the C++ stack below a call."""
