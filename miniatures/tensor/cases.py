"""Tensors of many kinds, and what PyTorch itself says of their fields."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from insidetorch.private.graph import is_view, version
from insidetorch.private.keys import dispatch_key_bits
from insidetorch.private.memory import (
    data_address,
    lazy_clone,
    storage_address,
    storage_use_count,
    use_count,
)

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool, torch.float8_e4m3fn,
)  # fmt: skip


@dataclass
class Case:
    """A tensor, what was done to it, and all that must stay alive with it."""

    tensor: Tensor
    traits: set[str] = field(default_factory=set)
    held: list[Any] = field(default_factory=list)


def random_case(seed: int) -> Case:
    """Return a strided tensor made in one of many ways; the same one for the same seed."""
    rng = random.Random(seed)
    dtype, device = rng.choice(DTYPES), "meta" if rng.random() < 0.15 else "cpu"
    shape = [
        rng.choice((1, 2, 3, 4, 0 if rng.random() < 0.2 else 5)) for _ in range(rng.randrange(8))
    ]
    with torch.inference_mode(rng.random() < 0.15):
        case = Case(torch.empty(shape, dtype=dtype, device=device))
        if case.tensor.is_inference():
            case.traits.add("inference tensor")
        for step in rng.sample(STEPS, rng.randrange(4)):
            step(case, rng)
    for name, there in (("meta", device == "meta"), ("no element", case.tensor.numel() == 0),
                        ("six dimensions or more", case.tensor.dim() > 5)):  # fmt: skip
        if there:
            case.traits.add(name)
    return case


def view(case: Case, rng: random.Random) -> None:
    """Cut, turn or widen the tensor without moving an element."""
    tensor = case.tensor
    if tensor.dim() == 0:
        made = tensor.expand(3)
    else:
        dim = rng.randrange(tensor.dim())
        made = rng.choice((
            lambda: tensor.transpose(0, dim),
            lambda: tensor.narrow(dim, tensor.shape[dim] // 2, tensor.shape[dim] // 3),
            lambda: tensor.unsqueeze(dim).expand(*tensor.shape[:dim], 2, *tensor.shape[dim:]),
            lambda: tensor[(slice(None),) * dim + (slice(None, None, 2),)],
        ))()  # fmt: skip
    case.traits.add("view")
    case.held.append(tensor)
    case.tensor = made


def channels_last(case: Case, rng: random.Random) -> None:
    """Store four dimensions with the channels innermost."""
    if case.tensor.dim() == 4:
        case.tensor = case.tensor.contiguous(memory_format=torch.channels_last)
        case.traits.add("channels last")


def write(case: Case, rng: random.Random) -> None:
    """Write in place a few times, unless elements overlap."""
    if 0 not in case.tensor.stride() and not case.tensor.requires_grad:
        for _ in range(rng.randrange(1, 4)):
            case.tensor.zero_()
        case.traits.add("written in place")


def record(case: Case, rng: random.Random) -> None:
    """Want a gradient, and have autograd save the tensor."""
    if (
        case.tensor.is_floating_point()
        and case.tensor.itemsize > 1
        and not case.tensor.is_inference()
    ):
        with torch.inference_mode(False):
            case.tensor = case.tensor.detach().requires_grad_()
            case.held.append(case.tensor.exp() * case.tensor)
        case.traits.add("saved by autograd")


def compute(case: Case, rng: random.Random) -> None:
    """Take the result of an operation."""
    if case.tensor.itemsize > 1:
        case.tensor = case.tensor + case.tensor
        case.traits.add("result")


def share(case: Case, rng: random.Random) -> None:
    """Give the storage more owners."""
    case.held += [case.tensor.detach() for _ in range(rng.randrange(1, 5))]
    case.traits.add("storage shared")


def lazily(case: Case, rng: random.Random) -> None:
    """Clone without copying yet."""
    if case.tensor.device.type == "cpu" and not case.tensor.is_inference():
        case.held.append(case.tensor)
        case.tensor = lazy_clone(case.tensor.detach())
        case.traits.add("lazy clone")


def attach(case: Case, rng: random.Random) -> None:
    """Give the Python object an attribute."""
    case.tensor.note = "kept"  # type: ignore[attr-defined]
    case.traits.add("attribute")


STEPS = [view, view, channels_last, write, record, compute, share, lazily, attach]


def told(tensor: Tensor) -> dict[str, Any]:
    """Return what PyTorch says of the fields that `miniatures.tensor.reader.read` reads."""
    storage = tensor.untyped_storage()
    return {
        "sizes": tuple(tensor.shape),
        "strides": tensor.stride(),
        "offset": tensor.storage_offset(),
        "elements": tensor.numel(),
        "dtype": tensor.dtype,
        "device": tensor.device.type,
        "dispatch keys": dispatch_key_bits(tensor),
        "contiguous": tensor.is_contiguous(),
        "channels last": tensor.dim() == 4
        and tensor.is_contiguous(memory_format=torch.channels_last),
        "dense without overlap": bool(torch.ops.aten.is_non_overlapping_and_dense.default(tensor)),
        "autograd data": tensor.requires_grad or is_view(tensor),
        "version": None if tensor.is_inference() else version(tensor),
        "references": use_count(tensor),
        "Python object": id(tensor),
        "storage": storage_address(storage),
        "storage's bytes": storage.nbytes(),
        "storage's references": storage_use_count(storage),
        "storage's memory": data_address(tensor),
        "storage's device": storage.device.type,
        "resizable": storage.resizable(),
        "first element": data_address(tensor)
        and data_address(tensor) + tensor.storage_offset() * tensor.itemsize,
    }
