"""Drift in words: for a terminal, as Markdown for an issue, as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from insidetorch.drift import outcomes, stored
from insidetorch.drift.findings import Finding, by_definition
from insidetorch.drift.outcomes import Outcome

SCHEMA = 2
ISSUE = 60_000
"""Bytes of an issue's body; a host takes 65,536 characters."""
WORDS = ("green", "look", "broken")
_MOST_LINES = 40
_KINDS = {
    "failed": "no longer holds",
    "error": "error",
    "missing": "was not reached",
    "deprecation": "new deprecation",
    "warning": "new warning",
    "output": "stable output changed",
}


@dataclass(frozen=True)
class Report:
    """What is known of one release.

    :param static: findings as `by_definition` gives them; None if it was not compared.
    :param executed: outcomes as JSON objects; None if the book did not run on it.
    :param notes: sentences about the comparison itself.
    """

    release: str
    pinned: str
    static: tuple[Mapping[str, Any], ...] | None = None
    executed: tuple[Mapping[str, Any], ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """0 green, 1 look, 2 broken."""
        static = [int(finding["severity"]) for finding in self.static or ()]
        executed = [outcomes.severity(outcome["kind"]) for outcome in self.executed or ()]
        return max([*static, *executed], default=0)


def asks(finding: Mapping[str, Any]) -> bool:
    """Tell whether a finding asks for a look."""
    return int(finding["severity"]) > 0


def static_report(
    findings: Sequence[Finding], release: str, pinned: str, notes: Iterable[str]
) -> Report:
    """Return the report of a static comparison."""
    return Report(release, pinned, tuple(by_definition(findings)), None, tuple(notes))


def executed_report(found: Sequence[Outcome], release: str, pinned: str) -> Report:
    """Return the report of an executed comparison."""
    return Report(release, pinned, None, tuple(asdict(outcome) for outcome in found))


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON data."""
    return {"schema": SCHEMA, "verdict": WORDS[report.code], **asdict(report)}


def from_json(data: Mapping[str, Any], name: str) -> Report:
    """Return the report in JSON data.

    :raises BookError: it is none, or one of a newer schema.
    """
    found = stored.read(data, Report, SCHEMA, name, "make drift")
    if found.static and data["schema"] < SCHEMA:
        note = f"{name} is of an older toolkit; make it again with `make drift`."
        return replace(found, static=None, notes=(note, *found.notes))
    return found


def together(reports: Iterable[Report]) -> list[Report]:
    """Return one report for each release, its static and its executed part together."""
    found: dict[str, Report] = {}
    for report in reports:
        known = found.get(report.release, Report(report.release, report.pinned))
        found[report.release] = Report(
            report.release,
            report.pinned,
            report.static if report.static is not None else known.static,
            report.executed if report.executed is not None else known.executed,
            tuple(dict.fromkeys([*known.notes, *report.notes])),
        )
    return list(found.values())


def terminal(report: Report, *, everything: bool = False) -> list[str]:
    """Return the lines to print: what was executed first, then the code.

    :param everything: also what misleads nobody.
    """
    lines = list(report.notes)
    if report.executed is not None:
        lines.append(
            f"{len(report.executed)} differences when executed, torch {report.pinned} → "
            f"{report.release}"
        )
        for doc, rows in _by_chapter(report.executed):
            lines += [doc, *(f"  {_outcome(one)}" for one in rows)]
    if report.static is not None:
        counts = Counter(
            one["verdict"] for finding in report.static for one in (finding, *finding["others"])
        )
        said = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()) or "none"
        shown = [finding for finding in report.static if everything or asks(finding)]
        lines.append(
            f"{counts.total()} anchors, torch {report.pinned} → {report.release}: {said}; "
            f"{sum(map(asks, report.static))} definitions to look at"
        )
        for finding in shown:
            head, *rest = _finding_lines(finding)
            lines += [head, *(f"  {line}" for line in rest)]
    lines.append(f"verdict: {WORDS[report.code]}")
    return lines


def markdown(reports: Sequence[Report], title: str, most: int = ISSUE) -> str:
    """Return the body of one issue about several releases, the most important first.

    What was executed comes before what was compared, and of that the most misleading first.

    :param most: its bytes at most; a sentence at its end says how many lines are left out.
    """
    parts = [f"# {title}\n", "".join(f"- torch {r.release}: {WORDS[r.code]}\n" for r in reports)]
    parts += [f"> {note}\n" for note in dict.fromkeys(n for r in reports for n in r.notes)]
    parts += [part for report in reports for part in _executed_markdown(report)]
    parts += [part for report in reports for part in _static_markdown(report)]
    room = most - 200
    for count, part in enumerate(parts):
        room -= len(part.encode()) + 1
        if room < 0:
            left = len("\n".join(parts[count:]).splitlines())
            said = f"{left} more lines are left out here; the JSON of this report has all.\n"
            return "\n".join([*parts[:count], said])
    return "\n".join(parts)


def _executed_markdown(report: Report) -> Iterator[str]:
    if report.executed is None:
        return
    count = len(report.executed)
    yield f"## torch {report.release}, executed: {count} differences\n"
    ordered = sorted(report.executed, key=lambda one: -outcomes.severity(one["kind"]))
    for doc, rows in _by_chapter(ordered):
        yield f"### {doc}\n"
        yield "".join(f"- {_outcome(one)}\n" for one in rows)


def _static_markdown(report: Report) -> Iterator[str]:
    if report.static is None:
        return
    shown = [finding for finding in report.static if asks(finding)]
    yield f"## torch {report.release}, its code: {len(shown)} definitions to look at\n"
    for finding in shown:
        head, *rest = _finding_lines(finding)
        lines = [f"- {_code(head, finding['anchor']['target'])}"]
        lines += [f"  - {line.strip()}" for line in rest]
        diff = finding["diff"][:_MOST_LINES]
        if diff:
            left = len(finding["diff"]) - len(diff)
            lines += [
                "  <details><summary>difference</summary>", "", "  ```diff",
                *(f"  {line}" for line in diff), *([f"  … {left} more lines"] if left else []),
                "  ```", "", "  </details>",
            ]  # fmt: skip
        yield "\n".join(lines) + "\n"


def _outcome(one: Mapping[str, Any]) -> str:
    detail = f" ({one['detail']})" if one["detail"] and "\n" not in one["detail"] else ""
    where = f"code cell {one['cell']}: " if one["cell"] else ""
    return f"{where}{_KINDS[one['kind']]}: {one['text']}{detail}"


def _finding_lines(finding: Mapping[str, Any]) -> list[str]:
    """Return what a finding is, why, and the chapters that it concerns."""
    where: dict[str, list[str]] = {}
    for one in (finding["anchor"], *finding["others"]):
        where.setdefault(one["chapter"], []).extend(map(str, one["cells"]))
    cells = "; ".join(
        f"{doc}, code cell {', '.join(dict.fromkeys(numbers))}" if numbers else doc
        for doc, numbers in where.items()
    )
    return [f"{finding['place']}: {finding['anchor']['target']}", *finding["why"], cells]


def _by_chapter(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["doc"], []).append(row)
    return list(found.items())


def _code(text: str, target: str) -> str:
    return text.replace(target, f"`{target}`", 1)
