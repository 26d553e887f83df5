"""A cell of an LSTM with norms inside, which `nn.LSTM` does not have."""

from __future__ import annotations

import torch
from torch import nn


class NormCell(nn.Module):
    """An `nn.LSTMCell` without biases, with a norm behind each product and on the memory."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(inputs, 4 * hidden, bias=False)
        self.of_state = nn.Linear(hidden, 4 * hidden, bias=False)
        sizes = (4 * hidden, 4 * hidden, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)

    def forward(
        self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the next hidden state and memory."""
        hidden, memory = state
        gates = self.norms[0](self.of_input(x)) + self.norms[1](self.of_state(hidden))
        write, keep, new, read = gates.chunk(4, -1)
        memory = keep.sigmoid() * memory + write.sigmoid() * new.tanh()
        return read.sigmoid() * self.norms[2](memory).tanh(), memory
