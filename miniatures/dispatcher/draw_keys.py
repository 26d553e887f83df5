"""Pictures of key sets: of tensors, of a call, of modes, and of a recorded walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from insidetorch.display import Display
from insidetorch.private.keys import key_bits, thread_sets
from miniatures.dispatcher.draw_grid import Kind, grid, in_words
from miniatures.dispatcher.record_walk import Stop
from miniatures.dispatcher.watch import functionalities, keys_here, walk

IN = Kind("a", "●", "in the set")
FIRST = Kind("b", "▶", "the highest: its kernel runs")
PLUS = Kind("c", "+", "the thread adds it")
MINUS = Kind("f", "−", "the thread takes it away")
ASIDE = Kind("", "↷", "this operator lets it fall through")
BACKEND = Kind("e", "●", "a backend bit")
DROPPED = Kind("d", "(+)", "no longer added")
LIFTED = Kind("e", "(−)", "no longer taken away")
ALONG = {"AutogradOther": "Autograd", "AutogradNestedTensor": "Autograd",
         "PythonTLSSnapshot": "Python"}  # fmt: skip
"""Bits that modes change together with another one: a picture shows that one."""
WORDS = {
    "AutocastCPU": "lower precision (autocast)",
    "AutogradCPU": "gradients (autograd)",
    "ADInplaceOrView": "views and writes in place",
    "BackendSelect": "functions without a tensor",
    "SparseCPU": "sparse numbers on the CPU",
    "CPU": "dense numbers on the CPU",
}
"""What some layers are for."""

FATES = {
    "excluded": Kind("", "off", "switched off on this thread"),
    "falls through": Kind("", "↷", "falls through: nothing to do for this operator"),
    "runs first": Kind("b", "1st", "runs first, and hands the call on"),
    "runs next": Kind("a", "2nd", "runs next"),
    "not reached": Kind("", "–", "not reached"),
}


def layers(operator: str, *tensors: Tensor, **picture: Any) -> Display:
    """Draw the layers that a call could meet, the first on top, and what becomes of each.

    :param picture: caption and name.
    """
    steps = walk(operator, *tensors)
    words = [WORDS.get(step.key, step.key) for step in steps]
    fates = {word: FATES[step.fate] for word, step in zip(words, steps, strict=True)}
    said = "; ".join(f"{word}: {step.fate}" for word, step in zip(words, steps, strict=True))
    return grid(
        list(fates), ["this call"], lambda row, _: fates[row],
        alt=f"The layers of {operator}, the first on top. {said}.", **picture,
    )  # fmt: skip


def sets(named: Mapping[str, int], **picture: Any) -> Display:
    """Draw key sets side by side: backend bits below, functionality bits above.

    :param named: 64-bit sets by the words above their column.
    """
    keys, every = keys_here(), 0
    for bits in named.values():
        every |= bits
    backends = [name for n, name in enumerate(keys.backends) if every >> n & 1]
    rows = [*reversed(functionalities(every)), *(f"on {name}" for name in reversed(backends))]

    def cell(row: str, column: str) -> Kind | None:
        bits = named[column]
        if row.startswith("on "):
            return BACKEND if bits >> keys.backends.index(row[3:]) & 1 else None
        return IN if row in functionalities(bits) else None

    return grid(rows, list(named), cell, alt=in_words(rows, list(named), cell), **picture)


def the_sum(operator: str, *tensors: Tensor, **picture: Any) -> Display:
    """Draw how the set of a call is computed: united, added to, taken from, masked."""
    included, _ = thread_sets()
    steps = walk(operator, *tensors)
    rows = [step.key for step in steps]
    carried = [set(_runtime(key_bits(tensor))) for tensor in tensors]
    columns = [f"tensor {n}" for n in range(1, len(tensors) + 1)]
    columns += ["+ thread", "− thread", "− falls through", "= the set"]
    first = next(step.key for step in steps if step.fate == "runs first")
    bits = keys_here().bits

    def cell(row: str, column: str) -> Kind | None:
        fate = next(step.fate for step in steps if step.key == row)
        if column.startswith("tensor"):
            return IN if row in carried[columns.index(column)] else None
        if column == "+ thread":
            return PLUS if functionalities(bits[row])[0] in functionalities(included) else None
        if column == "− thread":
            return MINUS if fate == "excluded" else None
        if column == "− falls through":
            return ASIDE if fate == "falls through" else None
        if row == first:
            return FIRST
        return IN if fate in ("runs next", "not reached") else None

    alt = f"The keys of {operator}. {in_words(rows, columns, cell)}"
    return grid(rows, columns, cell, alt=alt, wide=0.72, **picture)


def changes(found: Mapping[str, Sequence[str]], **picture: Any) -> Display:
    """Draw what modes change, from `seen_inside`: in the thread's sets, and in a tensor's.

    :param found: by mode, three texts such as ``+Python −ADInplaceOrView``.
    """
    names = {word[1:] for texts in found.values() for text in texts for word in text.split()}
    every = functionalities((1 << 64) - 1)
    rows = [name for name in reversed(every)
            if name in names and ALONG.get(name) not in names]  # fmt: skip

    def cell(row: str, column: str) -> Kind | None:
        includes, excludes, tensor = (text.split() for text in found[column])
        if f"+{row}" in includes:
            return PLUS
        if f"+{row}" in excludes:
            return MINUS
        if f"−{row}" in includes + excludes:
            return DROPPED if f"−{row}" in includes else LIFTED
        return IN if f"+{row}" in tensor else None

    columns = list(found)
    kinds = [PLUS, MINUS, DROPPED, LIFTED, Kind("a", "●", "a tensor inside carries it")]

    def shown(row: str, column: str) -> Kind | None:
        kind = cell(row, column)
        return kinds[-1] if kind is IN else kind

    alt = in_words(rows, columns, shown)
    return grid(rows, columns, shown, alt=alt, legend=kinds, **picture)


def stop(at: Stop, among: Sequence[Stop]) -> Display:
    """Draw one state of a recorded walk; all states of a walk have the same rows."""
    bits = keys_here().bits
    names = {name for each in among for name in [*each.keys, each.key]}
    rows = sorted(names, key=lambda name: -bits[name])
    usual = thread_sets()
    more, less = at.included & ~usual[0], at.excluded & ~usual[1]

    def cell(row: str, column: str) -> Kind | None:
        if column == "the call's set":
            return (FIRST if row == at.key else IN) if row in at.keys else None
        own = functionalities(bits[row])[0]
        if own in functionalities(less):
            return MINUS
        return PLUS if own in functionalities(more) else None

    columns = ["the call's set", "the thread"]
    here = {at.key: f"→ {at.kernel}"}
    pad = max(len(f"→ {each.kernel}") for each in among)
    return grid(
        rows, columns, cell, alt=in_words(rows, columns, cell), wide=0.95,
        marked={key: text.ljust(pad) for key, text in here.items()},
        legend=[FIRST, IN, PLUS, MINUS],
    )  # fmt: skip


def _runtime(bits: int) -> list[str]:
    keys, left, found = keys_here(), bits, []
    while (name := keys.top(left)) != "Undefined":
        found.append(name)
        left = keys.without(left, keys.bits[name])
    return found
