"""What "PyTorch in ten minutes" watches and draws; it builds nothing small."""
