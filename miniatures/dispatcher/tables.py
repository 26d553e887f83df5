"""The dispatcher in miniature: key sets, alias keys, computed tables, fallthrough, redispatch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RULES = {  # alias keys, the strongest first, and what a table calls their kernels
    "CompositeExplicitAutogradNonFunctional": "default backend kernel",
    "CompositeExplicitAutograd": "default backend kernel",
    "CompositeImplicitAutogradNestedTensor": "nested kernel",
    "CompositeImplicitAutograd": "math kernel",
    "Autograd": "autograd kernel",
    "FuncTorchBatchedDecomposition": "batched kernel",
}


@dataclass(frozen=True)
class Kernel:
    """A registered function and where it came from; without a function it falls through."""

    where: str
    run: Callable[..., Any] | None = None


def refuse(op: Operator, *rest: Any) -> Any:
    """Raise, as PyTorch does where two kernels could be meant."""
    raise RuntimeError(f"{op.name} is ambiguous: give the backend an autograd key of its own")


AMBIGUOUS = Kernel("ambiguous_autogradother", refuse)


class Keys:
    """Key sets as integers: one bit for each backend, above them one for each functionality.

    :param runtime: the keys that have a place in a table, in rising priority.
    :param backends: how many of the first are plain backends.
    """

    def __init__(self, runtime: Sequence[str], backends: int) -> None:
        self.runtime, self.backends = tuple(runtime), tuple(runtime[:backends])
        self.families: list[list[str]] = []  # the keys of each functionality, rising
        rest = list(runtime)
        while rest:
            family = self.family(rest[0].removesuffix(self.backends[0]))
            self.families.append(family if rest[: len(family)] == family else rest[:1])
            del rest[: len(self.families[-1])]
        self.bits: dict[str, int] = {}
        for place, family in enumerate(self.families, start=backends):
            for number, name in enumerate(family):
                self.bits[name] = 1 << place | (1 << number if len(family) > 1 else 0)

    def family(self, prefix: str) -> list[str]:
        """Return the keys of one functionality: `Sparse` gives SparseCPU, SparseCUDA, …"""
        return [prefix + backend for backend in self.backends]

    def top(self, keys: int) -> str:
        """Return the key served first: top functionality, top backend."""
        backends = len(self.backends)
        place = (keys >> backends).bit_length() - 1
        if place < 0:
            return "Undefined"
        number = (keys & (1 << backends) - 1).bit_length() - 1
        family = self.families[place]
        return family[max(number, 0)] if len(family) > 1 else family[0]

    def without(self, keys: int, others: int) -> int:
        """Take functionalities away; the backends stay for the others."""
        return keys & ~(others >> len(self.backends) << len(self.backends))

    def below(self, name: str) -> int:
        """Return all bits that are served after a key."""
        return (1 << self.bits[name].bit_length() - 1) - 1


def aliases(keys: Keys) -> dict[str, set[str]]:
    """Return the keys that each alias key stands for."""
    sparse, *layouts = map(keys.family, ("Sparse", "SparseCsr", "Quantized"))
    single = {"MkldnnCPU", "FPGA", "Vulkan", "Metal", "CustomRNGKeyId"}
    backends = single.union({"Undefined"}, keys.backends, sparse, *layouts)
    functional = {k for k in backends if k.endswith(("XLA", "Lazy"))} | {*sparse}
    nested = {*keys.family("NestedTensor"), "AutogradNestedTensor"}
    autograd = {*keys.family("Autograd"), "AutogradOther"}
    return {
        "CompositeExplicitAutogradNonFunctional": backends - functional,
        "CompositeExplicitAutograd": backends,
        "CompositeImplicitAutogradNestedTensor": nested,
        "CompositeImplicitAutograd": backends | autograd | nested,
        "Autograd": autograd | {"AutogradNestedTensor"},
        "FuncTorchBatchedDecomposition": {"FuncTorchBatched"},
    }


class Dispatcher:
    """What all operators share: keys, fallbacks, and the two sets of this thread.

    :param behind: the backend keys that each autograd key covers.
    """

    def __init__(self, keys: Keys, behind: Mapping[str, Collection[str]]) -> None:
        self.keys, self.behind, self.aliases = keys, behind, aliases(keys)
        self.fallbacks: dict[str, Kernel] = {}
        self.included = self.excluded = 0

    def call(self, op: Operator, keys: int, *args: Any) -> Any:
        """Run an operator; `keys` is the union of its tensors' key sets."""
        keys = left = self.keys.without(keys | self.included, self.excluded)
        while (name := self.keys.top(left)) != "Undefined":
            kernel, _ = op.entry(name)
            if kernel is not None and kernel.run is None:  # falls through
                keys = self.keys.without(keys, self.keys.bits[name])
            left = self.keys.without(left, self.keys.bits[name])
        return self.redispatch(op, keys, *args)

    def redispatch(self, op: Operator, keys: int, *args: Any) -> Any:
        """Run the kernel of a set's first key, whatever the thread's sets."""
        kernel, _ = op.entry(name := self.keys.top(keys))
        if kernel is None or kernel.run is None:
            raise NotImplementedError(f"'{op.name}' from the '{name}' backend")
        return kernel.run(op, keys, *args)


class Operator:
    """A name, and the kernels registered for it, newest first."""

    def __init__(self, name: str, dispatcher: Dispatcher) -> None:
        self.name, self.dispatcher = name, dispatcher
        self.kernels: dict[str, list[Kernel]] = {}

    def register(self, key: str, kernel: Kernel) -> None:
        """Put a kernel in front of those that a key, or an alias key, already has."""
        self.kernels.setdefault(key, []).insert(0, kernel)

    def entry(self, key: str) -> tuple[Kernel | None, str]:
        """Return the kernel in the place `key`, and by which rule."""
        if key in self.kernels:
            return self.kernels[key][0], "kernel"
        here, kernels = self.dispatcher, self.kernels
        covered = any(name in kernels for name in here.behind.get(key, ()))
        for alias, rule in RULES.items():
            if alias not in kernels or key not in here.aliases[alias]:
                continue
            if rule == "math kernel" and key == "AutogradOther" and covered:
                return AMBIGUOUS, "ambiguous autogradother"
            explicit = covered or "CompositeExplicitAutograd" in kernels
            if rule != "math kernel" or not explicit:
                return kernels[alias][0], rule
        return here.fallbacks.get(key), "backend fallback"
