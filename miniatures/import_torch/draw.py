"""The pictures of one import: its course in time, and the process after each stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.import_torch.watch_stages import Run, State

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, LINE = (COLOURS[role] for role in ("ink", "soft", "line"))
STAGES = (
    ("python", "libraries", "the loader brings the libraries", "a"),
    ("libraries", "initModule", "C++ makes its Python types", "b"),
    ("initModule", "end", "Python runs torch's modules", "c"),
)
"""From which state to which a stage lasts, what it is called, and its colour."""

SAYS = {
    "python": "Before the line: a process with Python in it, and none of PyTorch's libraries.",
    "small": "A line of Python has loaded one small library, and with it OpenMP. The next line of "
    "`torch/__init__.py` asks for `torch._C`.",
    "libraries": "The loader has brought the rest and run their constructors. Python has called "
    "nothing yet, and the operators are registered.",
    "initModule": "`initModule` has run: `torch._C` exists, and in it the base class of "
    "tensors. `zeros(2)` crashes.",
    "before_tensor": "Python's half has begun. It is about to derive `Tensor` from the base.",
    "types": "`Tensor` is derived, and `_initExtension` has put the data types into `torch`.",
    "class": "`_autograd_init` has handed the finished class `Tensor` to C++. From here on "
    "`zeros(2)` makes a tensor.",
    "end": "The end of the import: several hundred modules, and the operators that are defined in "
    "Python.",
}
"""What the book says of each state."""


def timeline(run: Run, *, caption: str = "", name: str = "") -> Display:
    """Draw an import in time: its three stages, and four things that grow."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    points, states = run.points, run.states
    at = {state.name: state.at * 1e3 for state in states}
    first, last = at["python"], at["end"]
    libraries = [(state.at * 1e3, len(state.own)) for state in states]
    operators = [(s.at * 1e3, s.operators) for s in states]
    operators += [(p.at * 1e3, p.operators) for p in points if p.operators is not None]
    memory = [(p.at * 1e3, p.resident / 2**20) for p in points if p.at >= states[0].at]
    modules = [(p.at * 1e3, p.modules) for p in points if p.at >= states[0].at]
    rows: list[tuple[str, list[tuple[float, float]]]] = [
        ("libraries of PyTorch", [(x, float(y)) for x, y in libraries]),
        ("operators", sorted((x, float(y)) for x, y in operators)),
        ("Python modules", [(x, float(y)) for x, y in modules]),
        ("MiB of memory", memory),
    ]
    with style():
        fig, axes = plt.subplots(len(rows), 1, sharex=True, figsize=(5.2, 4.3))
        for ax, (title, line) in zip(axes, rows, strict=True):
            for begin, end, _, colour in STAGES:
                ax.axvspan(at[begin], at[end], color=COLOURS[colour], alpha=0.17, lw=0)
            xs, ys = [x for x, _ in line], [y for _, y in line]
            xs, ys = [*xs, last], [*ys, ys[-1]]
            ax.step(xs, ys, where="post", color=INK, lw=1.6)
            ax.set_xlim(first, last)
            ax.set_ylim(0, max(ys) * 1.3)
            ax.set_yticks([max(ys)], [f"{max(ys):,.0f}"])
            ax.grid(False)
            ax.tick_params(axis="y", length=0)
            ax.text(
                0.99, 0.12, title, transform=ax.transAxes, fontsize=10.5, ha="right", va="bottom"
            )
        axes[-1].set_xlabel("milliseconds of this import, without what watching it took")
        fig.legend(
            handles=[
                Patch(fc=COLOURS[colour], alpha=0.4, label=f"{place}  {says}")
                for place, (_, _, says, colour) in enumerate(STAGES, 1)
            ],
            loc="outside upper left", ncols=1, frameon=False, fontsize=10.5, handlelength=0.9,
            borderaxespad=0,
        )  # fmt: skip
    said = "; ".join(
        f"{says}: {at[begin]:.0f} to {at[end]:.0f} ms, with "
        f"{len(run.state(end).own)} libraries, {run.state(end).operators:,} operators and "
        f"{run.state(end).modules:,} modules at its end"
        for begin, end, says, _ in STAGES
    )
    return figure(fig, alt=f"One import of torch in time. {said}.", caption=caption, name=name)


def stages(run: Run) -> list[tuple[Display, str]]:
    """Draw the process at the end of each stage, each with what the book says of it."""
    drawn, before = list[tuple[Display, str]](), None
    most = run.states[-1]
    for state in run.states:
        drawn.append((process(state, before, most), SAYS[state.name]))
        before = state
    return drawn


def process(state: State, before: State | None, most: State) -> Display:
    """Draw what is in the process: libraries, counts against the end, and what works."""
    axes = canvas(5.2, 3.3)
    old = before.own if before else []
    axes.text(0, 3.12, "PyTorch's libraries", fontsize=10.5, color=SOFT, va="center")
    for at, one in enumerate(most.own):
        y = 2.72 - 0.3 * at
        there, new = one in state.own, one in state.own and one not in old
        short = one.split(".cpython")[0].removesuffix(".so.1").removesuffix(".so")
        box(axes, 0, y, 2.0, 0.25, "b" if new else "a" if there else "", there)
        axes.text(
            0.08, y + 0.12, short, fontsize=10, va="center", color=INK if there else SOFT
        )  # fmt: skip
    rows = [
        ("operators", state.operators, most.operators, before.operators if before else 0),
        ("Python modules", state.modules, most.modules, before.modules if before else 0),
        ("of them torch's", state.of_torch, most.of_torch, before.of_torch if before else 0),
        ("names in torch", state.names, most.names, before.names if before else 0),
    ]
    for at, (title, value, top, was) in enumerate(rows):
        y = 2.86 - 0.42 * at
        axes.text(2.25, y + 0.22, title, fontsize=10.5, color=SOFT, va="center")
        axes.text(5.18, y + 0.22, f"{value:,}", fontsize=10.5, ha="right", va="center")
        box(axes, 2.25, y - 0.05, 2.93, 0.13, "", False)
        bar(axes, 2.25, y - 0.05, 2.93 * was / top, 0.13, "a")
        bar(axes, 2.25 + 2.93 * was / top, y - 0.05, 2.93 * (value - was) / top, 0.13, "b")
    works = works_in(state)
    had = works_in(before) if before else dict.fromkeys(works, "–")
    for at, (what, answer) in enumerate(works.items()):
        x, y = 2.25 + 1.5 * (at % 2), 0.88 - 0.32 * (at // 2)
        good, new = answer == "yes", answer != had[what]
        role = "d" if answer == "crashes" else "b" if good and new else "a" if good else ""
        box(axes, x, y, 1.43, 0.26, role, bool(role))
        mark = {"yes": "✓", "crashes": "crash"}.get(answer, "–")
        axes.text(x + 0.07, y + 0.12, what, fontsize=10, va="center", color=INK if role else SOFT)
        axes.text(x + 1.38, y + 0.12, mark, fontsize=10, ha="right", va="center")
    said = "; ".join(f"{what}: {answer}" for what, answer in works.items())
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"{', '.join(state.own) or 'No library of PyTorch'}. {state.operators:,} operators, "
        f"{state.modules:,} Python modules, {state.names:,} names in torch. {said}.",
    )


def works_in(state: State) -> dict[str, str]:
    """Return what works in a state: ``yes``, ``–`` or ``crashes``."""
    told = {
        "base class": state.base,
        "data types": state.dtype,
        "class Tensor": state.Tensor,
        "torch.add": state.add,
        "torch.nn": state.nn,
    }
    found = {what: "yes" if there else "–" for what, there in told.items()}
    made = {"yes": "yes", "crashes": "crashes"}.get(state.tensor, "–")
    return {**found, "zeros(2)": made}


def canvas(width: float, height: float) -> Axes:
    """Return axes of that many inches, without lines."""
    import matplotlib.pyplot as plt

    with style():
        axes: Axes = plt.subplots(figsize=(width, height))[1]
    axes.set(xlim=(-0.03, width + 0.03), ylim=(-0.03, height))
    axes.set_axis_off()
    return axes


def box(
    axes: Axes, x: float, y: float, width: float, height: float, role: str, filled: bool
) -> None:
    """Draw a box; `role` is its colour, the colour of rules without one."""
    from matplotlib.patches import Rectangle

    colour = COLOURS[role or "line"]
    if filled:
        bar(axes, x, y, width, height, role or "line", 0.2)
    axes.add_patch(Rectangle((x, y), width, height, fc="none", ec=colour, lw=1.2))


def bar(
    axes: Axes, x: float, y: float, width: float, height: float, role: str, alpha: float = 0.8
) -> None:
    """Draw a filled bar."""
    from matplotlib.patches import Rectangle

    if width > 0:
        patch = Rectangle((x, y), width, height, fc=COLOURS[role], ec="none", alpha=alpha)
        axes.add_patch(patch)


def legend(axes: Axes, y: float, entries: Sequence[tuple[str, str]], step: float = 1.3) -> None:
    """Write what colours mean, in a row."""
    for at, (role, says) in enumerate(entries):
        box(axes, step * at, y, 0.16, 0.16, role, True)
        axes.text(step * at + 0.23, y + 0.08, says, fontsize=10, va="center")
