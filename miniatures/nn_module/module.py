"""`nn.Module` in miniature: names that find their table, calls with hooks, state dicts.

Parameters and buffers are PyTorch's own, so state dicts go both ways. Left out: backward hooks,
keyword arguments in hooks, extra state, lazy parameters, `swap_tensors`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Hooks = dict[str, list[Callable[..., Any]]]
EVERYWHERE: Hooks = {"before": [], "after": []}  # hooks of all modules


class Module:
    """An object that knows its tensors by name, and runs hooks when it is called."""

    version = 1  # saved with the state; raised when the names of the tensors change

    def __init__(self) -> None:
        for table in TABLES.values():
            object.__setattr__(self, table, {})
        self.transient: set[str] = set()  # names of buffers that are not saved
        self.hooks: Hooks = {"before": [], "after": []}
        self.training = True

    def __setattr__(self, name: str, value: Any) -> None:
        for kind, title in TABLES.items():
            table = self.__dict__.get(title)
            if isinstance(value, kind):
                if table is None:
                    raise AttributeError(f"{type(self).__name__}: call Module.__init__() first")
                if kind is nn.Buffer:
                    if name not in table and hasattr(self, name):
                        raise KeyError(f"attribute '{name}' already exists")
                    (self.transient.discard if value.persistent else self.transient.add)(name)
                for other in (self.__dict__, self.parameters, self.children, self.buffers):
                    if other is not table:
                        other.pop(name, None)
                table[name] = value
                return
            if table is not None and name in table:  # a name keeps its table
                if value is not None and not (kind is nn.Buffer and isinstance(value, Tensor)):
                    raise TypeError(f"{name}: expected {kind.__name__} or None")
                table[name] = value
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # Python asks here only after it found nothing
        for title in TABLES.values():
            if name in self.__dict__.get(title, ()):
                return self.__dict__[title][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __call__(self, *args: Any) -> Any:
        for hook in (*EVERYWHERE["before"], *self.hooks["before"]):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args)
        for hook in (*EVERYWHERE["after"], *self.hooks["after"]):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def modules(self, seen: set[int] | None = None) -> Iterator[Module]:
        """Yield this module and those below it, each once, parents first."""
        seen = set() if seen is None else seen
        if id(self) not in seen:
            seen.add(id(self))
            yield self
            for child in filter(None, self.children.values()):
                yield from child.modules(seen)

    def convert(self, function: Callable[[Tensor], Tensor]) -> None:
        """Put `function` of each tensor in its place; parameters stay the same objects."""
        for child in filter(None, self.children.values()):
            child.convert(function)
        for parameter in self.parameters.values():
            if parameter is not None:
                with torch.no_grad():
                    gradient, parameter.data = parameter.grad, function(parameter)
                    if gradient is not None:
                        gradient.data = function(gradient)
        for name, buffer in self.buffers.items():
            self.buffers[name] = None if buffer is None else function(buffer)

    def own_state(self) -> dict[str, Tensor]:
        """Return what this module itself, without its children, has in a state dict."""
        saved = {name: b for name, b in self.buffers.items() if name not in self.transient}
        return {name: t for name, t in (self.parameters | saved).items() if t is not None}

    def state_dict(self, prefix: str = "", into: Any = None) -> Any:
        """Return aliases of all tensors by full name; beside them, the modules' versions."""
        into = OrderedDict() if into is None else into
        versions = into.__dict__.setdefault("_metadata", OrderedDict())
        versions[prefix[:-1]] = {"version": self.version}
        into.update({prefix + name: t.detach() for name, t in self.own_state().items()})
        for name, child in self.children.items():
            if child is not None:
                child.state_dict(f"{prefix}{name}.", into)
        return into

    def load_state_dict(
        self, state: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> tuple[list[str], list[str]]:
        """Load what fits; return missing and unexpected names, or raise (`strict`; sizes)."""
        mine, versions = dict(state), getattr(state, "_metadata", {})
        missing, unexpected, errors = list[str](), list[str](), list[str]()

        def load(module: Module, prefix: str) -> None:
            module.upgrade(mine, prefix, versions.get(prefix[:-1], {}).get("version"))
            own = module.own_state()
            missing.extend(prefix + name for name in own if prefix + name not in mine)
            for key in [key for key in mine if key.startswith(prefix)]:
                name, dot, _ = key.removeprefix(prefix).partition(".")
                if name not in (module.children if dot else own):
                    unexpected.append(key)
                elif not dot and mine[key].shape != own[name].shape:
                    errors.append(f"size mismatch for {key}: {mine[key].shape}")
                elif not dot and assign and isinstance(own[name], nn.Parameter):
                    setattr(module, name, nn.Parameter(mine[key], own[name].requires_grad))
                elif not dot and assign:
                    setattr(module, name, mine[key])
                elif not dot:
                    with torch.no_grad():
                        own[name].copy_(mine[key])
            for name, child in module.children.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")

        load(self, "")
        if strict:
            errors += [f"unexpected {key}" for key in unexpected] + [f"no {k}" for k in missing]
        if errors:
            raise RuntimeError(f"{type(self).__name__}: " + "; ".join(errors))
        return missing, unexpected

    def upgrade(self, state: dict[str, Tensor], prefix: str, version: int | None) -> None:
        """Give tensors of an older version the names and values that this version expects."""


TABLES: dict[Any, str] = {nn.Parameter: "parameters", Module: "children", nn.Buffer: "buffers"}
