"""Operators of attention that have no public name."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_CPU_FLASH = Name("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default")


def cpu_flash_attention(query: Any, key: Any, value: Any, dropout: float) -> tuple[Any, Any]:
    """Call the attention that has a kernel for the CPU and a shape rule, and return both results.

    `torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default`.
    """
    result: tuple[Any, Any] = _CPU_FLASH.get()(query, key, value, dropout)
    return result
