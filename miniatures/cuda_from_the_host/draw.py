"""Pictures of programs: who is busy when, the order of steps line by line, who waits for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.cuda_from_the_host.order import before, races, times
from miniatures.cuda_from_the_host.streams import CPU, MAIN, Program, Step

_ROLES = {"call": "a", "wait": "b", "host": "e", "kernel": "c", "copy": "d"}
_SAYS = {"call": "calls", "wait": "waits", "host": "own work", "kernel": "kernel", "copy": "copy"}
_ARROW = {"arrowstyle": "->", "color": COLOURS["ink"], "lw": 1.3}
_SIGNS = {"wait": "///", "host": r"\\"}


def lanes(
    runs: Mapping[str, Program], *, arrows: bool = True,
    outlined: Mapping[str, Sequence[int]] | None = None, **picture: Any,
) -> Display:  # fmt: skip
    """Draw programs, each as a row for the CPU and one for each stream, over time.

    Arrows show what a stream's step waits for in another stream; steps in a race have an outline.

    :param outlined: numbers of further steps that have an outline, by program.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    rows = [(title, lane) for title, run in runs.items() for lane in _lanes(run.steps)]
    whole = max(end for run in runs.values() for _, end in times(run.steps))
    kinds = {step.kind for run in runs.values() for step in run.steps}
    with style():
        fig, ax = plt.subplots(figsize=(4.95, 0.37 * len(rows) + 0.95))
        for title, run in runs.items():
            when, racing = times(run.steps), {s.number for a, b, _ in races(run.steps)
                                              for s in (a, b)}  # fmt: skip
            for step in run.steps:
                at = rows.index((title, step.lane))
                bad = step.number in racing or step.number in (outlined or {}).get(title, ())
                shown = (_stands(run.steps, step, when), when[step.number][1])
                _box(ax, at, step, shown, whole, bad=bad)
                if arrows and step.lane != CPU:
                    _arrows(ax, rows, title, run.steps, step, when)
        ax.set_yticks(
            range(len(rows)),
            [f"{title}: {lane}" if title and lane == CPU else lane for title, lane in rows],
        )
        ax.set(xlim=(0, whole), ylim=(len(rows) - 0.45, -0.6), xlabel="time →")
        ax.set_xticks([])
        ax.grid(visible=False)
        marks = [Patch(facecolor=COLOURS[_ROLES[k]], hatch=_SIGNS.get(k, ""), label=_SAYS[k])
                 for k in _ROLES if k in kinds]  # fmt: skip
        ax.legend(handles=marks, loc="lower right", bbox_to_anchor=(1.02, 1), ncols=5,
                  frameon=False, fontsize=10, handlelength=1, columnspacing=0.7)  # fmt: skip
    return figure(fig, alt=in_words(runs), **picture)


def _stands(steps: Sequence[Step], step: Step, when: list[tuple[float, float]]) -> float:
    """Return when a step begins; of a wait, when the CPU begins to stand still for it."""
    if step.kind != "wait":
        return when[step.number][0]
    return max((when[n][1] for n in step.after if steps[n].lane == CPU), default=0.0)


def _lanes(steps: Sequence[Step]) -> list[str]:
    used = dict.fromkeys(step.lane for step in steps)
    return [CPU, *(lane for lane in used if lane != CPU)]


def _box(ax: Any, at: int, step: Step, when: tuple[float, float], whole: float, *, bad: bool
         ) -> None:  # fmt: skip
    wide = when[1] - when[0]
    ax.barh(at, wide, left=when[0], height=0.6, color=COLOURS[_ROLES[step.kind]],
            hatch=_SIGNS.get(step.kind, ""), edgecolor=COLOURS["f" if bad else "pane"],
            linewidth=2.4 if bad else 0.6, zorder=3 if bad else 2)  # fmt: skip
    if step.kind not in ("call", "wait") and wide / whole > 0.024 * len(step.name):
        ax.text(when[0] + wide / 2, at, step.name, ha="center", va="center", fontsize=10,
                color=COLOURS["pane"], zorder=4)  # fmt: skip


def _arrows(ax: Any, rows: list[tuple[str, str]], title: str, steps: Sequence[Step], step: Step,
            when: list[tuple[float, float]]) -> None:  # fmt: skip
    for number in step.after:
        other = steps[number]
        if other.lane not in (CPU, step.lane):
            start = (when[number][1], rows.index((title, other.lane)))
            end = (when[step.number][0], rows.index((title, step.lane)))
            ax.annotate("", xy=end, xytext=start, zorder=5, arrowprops=_ARROW)


def in_words(runs: Mapping[str, Program]) -> str:
    """Return what a picture of programs shows, as text."""
    parts = []
    for title, run in runs.items():
        when = times(run.steps)
        said = [f"{step.name} on {step.lane} from {when[step.number][0]:g} to "
                f"{when[step.number][1]:g} µs" for step in run.steps
                if step.kind != "call"]  # fmt: skip
        found = [f"{a.name} and {b.name} race on {name}" for a, b, name in races(run.steps)]
        parts.append(f"{title or 'The program'}: " + ", ".join([*said, *found]))
    return "; ".join(parts) + "."


def states(program: Sequence[tuple[str, str]]) -> list[tuple[Display, str]]:
    """Run a program line by line, and draw after each what comes after what.

    :param program: lines such as ``fill: writes x``, ``side sum: reads x``, ``e.record()``,
        ``side.wait_event(e)``, ``e.synchronize()``; and what is seen then.
    """
    run, drawn = Program(), []
    streams = [MAIN, "side"]
    for line, said in program:
        do(run, line)
        drawn.append((_graph(run, streams, len(program)), f"`{line}` {said}"))
    return drawn


def do(run: Program, line: str) -> None:
    """Do one line of a program of `states`."""
    what, _, uses = line.partition(": ")
    if uses:
        stream, _, name = what.rpartition(" ")
        tensors = dict(part.split(" ", 1) for part in uses.split(", "))
        run.kernel(name, 10, stream or MAIN, reads=tensors.get("reads", ""),
                   writes=tensors.get("writes", ""))  # fmt: skip
    elif what.startswith("cpu "):
        run.host(what.removeprefix("cpu "), 5)
    elif what.endswith(".synchronize()"):
        run.synchronize(event=what.partition(".")[0])
    elif ".wait_event(" in what:
        stream, _, event = what.rstrip(")").partition(".wait_event(")
        run.wait(stream, event)
    else:
        event, _, stream = what.rstrip(")").partition(".record(")
        run.record(event, stream or MAIN)


def _graph(run: Program, streams: Sequence[str], columns: int) -> Display:
    import matplotlib.pyplot as plt

    rows, certain = [CPU, *streams], before(run.steps)
    shown = [step for step in run.steps if step.lane != CPU or step.kind != "call"]
    place = {step.number: at for at, step in enumerate(shown)}
    raced = {step.number for a, b, _ in races(run.steps) for step in (a, b)}
    with style():
        fig, ax = plt.subplots(figsize=(4.95, 1.75))
        for step in shown:
            at, bad = rows.index(step.lane), step.number in raced
            ax.text(place[step.number], at, step.name.replace("synchronize", "waits"), ha="center",
                    va="center", fontsize=10, zorder=3, color=COLOURS["ink"],
                    bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "linewidth": 2,
                          "edgecolor": COLOURS["f" if bad else _ROLES[step.kind]]})  # fmt: skip
        for late in shown:
            for early in shown:
                known = certain[late.number]
                between = any(n in known and early.number in certain[n] for n in place)
                if early.number in known and not between:
                    start = (place[early.number] + 0.33, rows.index(early.lane))
                    end = (place[late.number] - 0.33, rows.index(late.lane))
                    ax.annotate("", xy=end, xytext=start, arrowprops=_ARROW)
        for event, mark in run.marks.items():
            for number in mark & place.keys():
                at = rows.index(run.steps[number].lane)
                ax.text(place[number] + 0.42, at - 0.38, f"⚑{event}", ha="center", va="center",
                        fontsize=10, color=COLOURS["b"])  # fmt: skip
        ax.set_yticks(range(len(rows)), rows)
        ax.set(xlim=(-0.6, max(columns - 2, 3) - 0.2), ylim=(len(rows) - 0.5, -0.6))
        ax.set_xticks([])
        ax.grid(visible=False)
    said = [f"{run.steps[n].name} before {late.name}" for late in shown
            for n in sorted(certain[late.number]) if n in place]  # fmt: skip
    raced_too = [f"{a.name} and {b.name} race on {name}" for a, b, name in races(run.steps)]
    return figure(fig, alt="; ".join([*(said or ["no order yet"]), *raced_too]) + ".")


def grid(rows: Mapping[str, Sequence[str]], columns: Sequence[str], **picture: Any) -> Display:
    """Draw a table of marks: which of the columns each row has."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.95, 0.285 * len(rows) + 0.75))
        for at, has in enumerate(rows.values()):
            for column, name in enumerate(columns):
                ax.plot(column, at, "o", ms=9, color=COLOURS["b"] if name in has else "none",
                        mec=COLOURS["b" if name in has else "line"], mew=0.8)  # fmt: skip
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xticks(range(len(columns)), [name.replace(" ", "\n", 1) for name in columns])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.set(xlim=(-0.6, len(columns) - 0.4), ylim=(len(rows) - 0.5, -0.6))
        ax.spines[:].set_visible(False)
        ax.grid(axis="x", visible=False)
    said = [f"{name}: {', '.join(has) or 'none'}" for name, has in rows.items()]
    return figure(fig, alt="; ".join(said) + ".", **picture)


def curve(values: Mapping[str, Sequence[float]], across: Sequence[int], **picture: Any) -> Display:
    """Draw the length of a run, in microseconds, over how often something is done."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.95, 2.6))
        for at, (name, lengths) in enumerate(values.items()):
            ax.plot(across, lengths, marker="o", ms=4, label=name, linestyle=("-", "--", ":")[at])
        ax.set(xscale="log", xlabel="steps between two questions", ylabel="µs for a step",
               ylim=(0, None))  # fmt: skip
        ax.set_xticks(across, [str(n) for n in across])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize=10)
    said = [f"{name}: {lengths[0]:.0f} µs for {across[0]}, {lengths[-1]:.0f} for {across[-1]}"
            for name, lengths in values.items()]  # fmt: skip
    return figure(fig, alt="; ".join(said) + ".", **picture)
