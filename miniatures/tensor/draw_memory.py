"""Drawing what lies in memory for a few tensors: the objects, their sizes, and who points where."""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from insidetorch.display import Display
from insidetorch.private.memory import root_of
from insidetorch.show.figures import COLOURS, graph
from miniatures.tensor.cpp_layout import size_of
from miniatures.tensor.reader import Record, impl_of, read, storage_of, version_of

if TYPE_CHECKING:
    from torch import Tensor


_DASHED = 'label=" a view of" style=dashed constraint=false'


def memory_map(tensors: Mapping[str, Tensor], caption: str = "", name: str = "") -> Display:
    """Draw strided tensors, given by name, as their memory has them; shared objects once.

    :param caption: what to look at; with `name`, as `graph` takes them.
    """
    boxes: dict[int, tuple[str, str]] = {}
    arrows: dict[tuple[int, int], str] = {}
    said, notes = [], []
    for title, tensor in tensors.items():
        impl, fields = impl_of(tensor), read(tensor)
        storage = storage_of(impl)
        assert storage is not None  # or `read` would have refused
        counter, data = impl["version_counter_"], fields["storage's memory"]
        strides, offset = list(fields["strides"]), fields["offset"]
        boxes[id(tensor)] = _box(title, "a", "Python object", bytes=sys.getsizeof(tensor))
        boxes[impl.address] = _box(
            "TensorImpl", "b", "", bytes=_size(impl), sizes=list(fields["sizes"]),
            strides=strides, offset=offset, dtype=str(fields["dtype"]).removeprefix("torch."),
        )  # fmt: skip
        boxes[storage.address] = _box(
            "StorageImpl", "c", "", bytes=_size(storage), nbytes=fields["storage's bytes"],
            device=fields["storage's device"],
        )  # fmt: skip
        boxes[data] = _box("the elements", "d", "", bytes=fields["storage's bytes"])
        arrows |= {(id(tensor), impl.address): "cdata", (impl.address, storage.address): "storage_"}
        arrows[storage.address, data] = "data_ptr_"
        if counter:
            boxes[counter] = _box(
                "VersionCounter", "e", "", bytes=size_of("VersionCounter")[0],
                version=version_of(impl),
            )  # fmt: skip
            arrows[impl.address, counter] = ""
        root = root_of(tensor)
        if root is not None and any(root is other for other in tensors.values()):
            notes.append(f"n{impl.address} -> n{impl_of(root).address} [{_DASHED}];")
        said.append(f"{title} has a TensorImpl with strides {strides} and offset {offset}")
    shared = "; all point to one StorageImpl" if len(said) > 1 and _same_storage(tensors) else ""
    lines = [
        f'n{place} [label=<{label}> color="{colour}"];' for place, (label, colour) in boxes.items()
    ]
    lines += [f'n{a} -> n{b} [label=" {text}"];' for (a, b), text in arrows.items()]
    lines += notes
    node = f'shape=box penwidth=1.6 style=filled fillcolor="{COLOURS["pane"]}"'
    edge = f'arrowsize=0.7 fontsize=11 fontcolor="{COLOURS["soft"]}"'
    return graph(
        "digraph { rankdir=TB; nodesep=0.3; ranksep=0.35; margin=0.02; "
        f"node [{node}]; edge [{edge}];\n" + "\n".join(lines) + "\n}",
        alt=f"What lies in memory: {'; '.join(said)}{shared}.",
        caption=caption, name=name,
    )  # fmt: skip


def _size(record: Record) -> int:
    return size_of(record.kind)[0]


def _same_storage(tensors: Mapping[str, Tensor]) -> bool:
    return len({impl_of(tensor)["storage_"] for tensor in tensors.values()}) == 1


def _box(title: str, colour: str, kind: str, *, bytes: int, **fields: object) -> tuple[str, str]:
    soft = COLOURS["soft"]
    rows = [f"<B>{html.escape(title)}</B>"]
    small = [kind] if kind else []
    small += [f"{name} {value}" for name, value in fields.items()]
    small += [f"{bytes:,} bytes"]
    rows += [f'<FONT COLOR="{soft}" POINT-SIZE="11">{html.escape(row)}</FONT>' for row in small]
    return "<BR/>".join(rows), COLOURS[colour]
