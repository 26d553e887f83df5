"""Forty operations for the chapter's table, and the calls whose kernels may copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

INPUTS: Mapping[str, Callable[[], Tensor]] = {
    "contiguous": lambda: torch.arange(24.0).reshape(4, 6),
    "transposed": lambda: torch.arange(24.0).reshape(6, 4).t(),
    "every 2nd": lambda: torch.arange(48.0).reshape(4, 12)[:, ::2],
}
"""Three 4×6 tensors that differ in strides alone."""

FORTY: Mapping[str, Callable[[Tensor], Any]] = {
    "x.contiguous()": lambda x: x.contiguous(),
    "x.to(torch.float32)": lambda x: x.to(torch.float32),
    "x.detach()": lambda x: x.detach(),
    "x.t()": lambda x: x.t(),
    "x.permute(1, 0)": lambda x: x.permute(1, 0),
    "x.movedim(0, 1)": lambda x: x.movedim(0, 1),
    "x[0]": lambda x: x[0],
    "x[:, 1:3]": lambda x: x[:, 1:3],
    "x[::2]": lambda x: x[::2],
    "x[None]": lambda x: x[None],
    "x.narrow(0, 1, 2)": lambda x: x.narrow(0, 1, 2),
    "x.squeeze()": lambda x: x.squeeze(),
    "x.diagonal()": lambda x: x.diagonal(),
    "x.unfold(1, 3, 1)": lambda x: x.unfold(1, 3, 1),
    "x.expand(2, 4, 6)": lambda x: x.expand(2, 4, 6),
    "x.as_strided((2, 2), (1, 1))": lambda x: x.as_strided((2, 2), (1, 1)),
    "x.split(2)": lambda x: torch.split(x, 2),
    "x.unbind()": lambda x: x.unbind(),
    "torch.meshgrid(x[0], x[1])": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
    "torch.einsum('ij->ji', x)": lambda x: torch.einsum("ij->ji", x),
    "x.unflatten(1, (2, 3))": lambda x: torch.unflatten(x, 1, (2, 3)),
    "x.view(torch.int32)": lambda x: x.view(torch.int32),
    "x.view(torch.int16)": lambda x: x.view(torch.int16),
    "x.view(4, 2, 3)": lambda x: x.view(4, 2, 3),
    "x.view(24)": lambda x: x.view(24),
    "x.reshape(4, 2, 3)": lambda x: x.reshape(4, 2, 3),
    "x.reshape(24)": lambda x: x.reshape(24),
    "x.flatten()": lambda x: x.flatten(),
    "x.clone()": lambda x: x.clone(),
    "x.to(torch.float64)": lambda x: x.to(torch.float64),
    "x[[0, 1, 2, 3]]": lambda x: x[[0, 1, 2, 3]],
    "x[x >= 0]": lambda x: x[x >= 0],
    "x.gather(0, i)": lambda x: x.gather(0, torch.zeros(4, 6, dtype=torch.long)),
    "x.repeat(1, 1)": lambda x: x.repeat(1, 1),
    "x.repeat_interleave(1, 0)": lambda x: x.repeat_interleave(1, 0),
    "torch.cat([x])": lambda x: torch.cat([x]),
    "torch.stack([x])": lambda x: torch.stack([x]),
    "x.flip(0)": lambda x: x.flip(0),
    "x.roll(0)": lambda x: x.roll(0),
    "x.tril(9)": lambda x: x.tril(9),
}
"""Names as they are typed, and the calls."""

SOME = (
    "x.contiguous()", "x.t()", "x.expand(2, 4, 6)", "x.view(torch.int16)", "x.view(4, 2, 3)",
    "x.view(24)", "x.reshape(24)", "x.flatten()", "x[[0, 1, 2, 3]]", "x.flip(0)", "x.repeat(1, 1)",
    "x.roll(0)",
)  # fmt: skip
"""Those of the forty that are seen first."""

KERNELS: Mapping[str, Callable[[Tensor, Tensor], Any]] = {
    "x + x": lambda x, w: x + x,
    "x.sum(0)": lambda x, w: x.sum(0),
    "x.cumsum(0)": lambda x, w: x.cumsum(0),
    "x @ w": lambda x, w: x @ w,
    "torch.bmm(x[None], w[None])": lambda x, w: torch.bmm(x[None], w[None]),
    "F.linear(x, w)": lambda x, w: F.linear(x, w),
    "torch.cat([x, x])": lambda x, w: torch.cat([x, x]),
    "x.softmax(0)": lambda x, w: x.softmax(0),
    "F.layer_norm(x, (8,))": lambda x, w: F.layer_norm(x, (8,)),
    "x.sort()": lambda x, w: x.sort(),
}
"""Calls on an 8×8 tensor and a contiguous 8×8 tensor."""

LAYERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "x.relu()": lambda x: x.relu(),
    "x + plain": lambda x: x + x.contiguous(),
    "plain + x": lambda x: x.contiguous() + x,
    "F.conv2d": lambda x: F.conv2d(x, torch.ones(8, 8, 3, 3)),
    "F.batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "F.group_norm": lambda x: F.group_norm(x, 2),
    "F.instance_norm": lambda x: F.instance_norm(x),
    "F.layer_norm": lambda x: F.layer_norm(x, (8, 6, 6)),
    "F.max_pool2d": lambda x: F.max_pool2d(x, 2),
    "F.adaptive_avg_pool2d(1)": lambda x: F.adaptive_avg_pool2d(x, 1),
    "F.interpolate": lambda x: F.interpolate(x, scale_factor=2),
    "F.grid_sample": lambda x: F.grid_sample(x, torch.zeros(2, 6, 6, 2), align_corners=False),
    "F.pad": lambda x: F.pad(x, (1, 1)),
    "F.pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "torch.cat([x, x], 1)": lambda x: torch.cat([x, x], 1),
    "torch.cat([x, plain], 1)": lambda x: torch.cat([x, x.contiguous()], 1),
    "x.softmax(1)": lambda x: x.softmax(1),
    "x.cumsum(1)": lambda x: x.cumsum(1),
    "x[:, :4]": lambda x: x[:, :4],
    "x[:, :4].clone()": lambda x: x[:, :4].clone(),
    "x.flip(3)": lambda x: x.flip(3),
    "x.repeat(1, 1, 1, 1)": lambda x: x.repeat(1, 1, 1, 1),
    "x.index_select(0, i)": lambda x: x.index_select(0, torch.tensor([0, 1])),
    "x.gather(1, i)": lambda x: x.gather(1, torch.zeros(2, 8, 6, 6, dtype=torch.long)),
    "x.masked_fill(m, 0)": lambda x: x.masked_fill(x > 0.5, 0),
    "torch.zeros_like(x)": lambda x: torch.zeros_like(x),
    "x.new_zeros(x.shape)": lambda x: x.new_zeros(x.shape),
    "x.reshape(2, 8, 6, 6)": lambda x: x.reshape(2, 8, 6, 6),
    "x.flatten(1)": lambda x: x.flatten(1),
}
"""What may stand between two convolutions, called with a channels-last image of 2×8×6×6."""
