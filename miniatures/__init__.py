"""PyTorch small enough to hold in the head: each module is what one chapter builds."""
