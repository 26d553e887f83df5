"""Recording CUDA cells on a machine with a GPU, and carrying the recordings home."""
