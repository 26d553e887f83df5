"""What the chapter "Dynamo" builds small, and what it watches PyTorch with."""
