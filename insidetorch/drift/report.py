"""Drift in words: for a terminal, as Markdown for an issue, as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from insidetorch.drift import compare, outcomes
from insidetorch.drift.compare import RANKS, Finding
from insidetorch.drift.outcomes import Outcome
from insidetorch.errors import BookError

SCHEMA = 1
WORDS = ("green", "look", "broken")
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

    :param static: findings as `finding_json` gives them; None if it was not compared.
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
        static = [compare.severity(finding["rank"]) for finding in self.static or ()]
        executed = [outcomes.severity(outcome["kind"]) for outcome in self.executed or ()]
        return max([*static, *executed], default=0)


def asks(finding: Mapping[str, Any]) -> bool:
    """Tell whether a finding asks for a look."""
    return compare.severity(finding["rank"]) > 0


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON data."""
    return {**asdict(finding), "place": RANKS[finding.rank]}


def static_report(
    findings: Sequence[Finding], release: str, pinned: str, notes: Iterable[str]
) -> Report:
    """Return the report of a static comparison."""
    return Report(release, pinned, tuple(map(finding_json, findings)), None, tuple(notes))


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
    try:
        if data["schema"] > SCHEMA:
            raise BookError(f"{name} has schema {data['schema']}, newer than {SCHEMA}; update.")

        def rows(key: str) -> tuple[Mapping[str, Any], ...] | None:
            return None if data[key] is None else tuple(data[key])

        notes = tuple(data["notes"])
        return Report(data["release"], data["pinned"], rows("static"), rows("executed"), notes)
    except (KeyError, TypeError) as error:
        raise BookError(f"{name} is no drift report ({error}); make it again.") from None


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
    """Return the lines to print.

    :param everything: also what misleads nobody.
    """
    lines = list(report.notes)
    if report.static is not None:
        counts = Counter(finding["verdict"] for finding in report.static)
        said = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()) or "no anchors"
        lines.append(
            f"{len(report.static)} anchors, torch {report.pinned} → {report.release}: {said}"
        )
        for chapter, findings in _by_chapter(report.static, "anchor"):
            shown = [f for f in findings if everything or asks(f)]
            lines += [chapter] if shown else []
            for finding in shown:
                lines += [f"  {line}" for line in _finding_lines(finding)]
    if report.executed is not None:
        lines.append(
            f"{len(report.executed)} differences when executed, torch {report.pinned} → "
            f"{report.release}"
        )
        for doc, rows in _by_chapter(report.executed, "doc"):
            lines.append(doc)
            for one in rows:
                detail = (
                    f" ({one['detail']})" if one["detail"] and "\n" not in one["detail"] else ""
                )
                where = f"cell {one['cell']}: " if one["cell"] else ""
                lines.append(f"  {where}{_KINDS[one['kind']]}: {one['text']}{detail}")
    lines.append(f"verdict: {WORDS[report.code]}")
    return lines


def markdown(reports: Sequence[Report], title: str) -> str:
    """Return the body of one issue about several releases."""
    lines = [f"# {title}", ""]
    for report in reports:
        lines += [f"## torch {report.release}: {WORDS[report.code]}", ""]
        lines += [f"> {note}" for note in report.notes]
        if report.static is not None:
            lines += _static_markdown(report)
        if report.executed is not None:
            lines += _executed_markdown(report)
    return "\n".join(lines).rstrip() + "\n"


def _static_markdown(report: Report) -> list[str]:
    assert report.static is not None
    shown = [finding for finding in report.static if asks(finding)]
    lines = [
        f"{len(shown)} of {len(report.static)} anchors to look at, compared with torch "
        f"{report.pinned}.",
        "",
    ]
    for chapter, findings in _by_chapter(shown, "anchor"):
        lines += [f"### {chapter}", ""]
        for finding in findings:
            head, *rest = _finding_lines(finding)
            lines.append(f"- {_code(head, finding['anchor']['target'])}")
            lines += [f"  - {line.strip()}" for line in rest]
            if finding["diff"]:
                lines += [
                    "  <details><summary>difference</summary>", "", "  ```diff",
                    *(f"  {line}" for line in finding["diff"]), "  ```", "", "  </details>",
                ]  # fmt: skip
        lines.append("")
    return lines


def _executed_markdown(report: Report) -> list[str]:
    assert report.executed is not None
    lines = [f"{len(report.executed)} differences when the chapters were executed.", ""]
    for doc, rows in _by_chapter(report.executed, "doc"):
        lines += [f"### {doc}", ""]
        for one in rows:
            where = f"code cell {one['cell']}, " if one["cell"] else ""
            detail = f" ({one['detail']})" if one["detail"] and "\n" not in one["detail"] else ""
            lines.append(f"- {where}{_KINDS[one['kind']]}: {one['text']}{detail}")
        lines.append("")
    return lines


def _finding_lines(finding: Mapping[str, Any]) -> list[str]:
    anchor = finding["anchor"]
    cells = ", ".join(map(str, anchor["cells"]))
    where = f" (cell {cells})" if cells else ""
    lines = [f"{finding['place']}: {anchor['target']}{where}"]
    if finding["file"] and finding["file"] != anchor["file"]:
        lines.append(f"  now in {finding['file']}:{finding['lines'][0]}")
    lines += [f"  {text}" for text in finding["breakages"][:12]]
    if len(finding["breakages"]) > 12:
        lines.append(f"  … and {len(finding['breakages']) - 12} more")
    if finding["near"]:
        lines.append(f"  perhaps now {'; '.join(finding['near'])}")
    if finding["deprecated"]:
        lines.append(f"  deprecated there: {finding['deprecated']}")
    return lines


def _by_chapter(
    rows: Iterable[Mapping[str, Any]], key: str
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["anchor"]["chapter"] if key == "anchor" else row["doc"], []).append(
            row
        )
    return list(found.items())


def _code(text: str, target: str) -> str:
    return text.replace(target, f"`{target}`", 1)
