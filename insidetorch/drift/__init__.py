"""Following PyTorch: what the book quotes and names, and what became of it in other releases."""
