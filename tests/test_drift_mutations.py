"""Every change of a definition is found at the anchors that it touches, and at no other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import drift_trees as sample
import pytest
from drift_mutations import mutations

from insidetorch.drift.anchors import Anchor
from insidetorch.drift.compare import compare
from insidetorch.drift.trees import Tree

SEED = 20261121
EACH = 4
EXPECTED = {
    "rename": "gone", "cpp_rename": "gone", "yaml_remove": "gone",
    "remove_parameter": "signature", "require_parameter": "signature",
    "yaml_schema": "signature", "cpp_parameter": "signature",
    "change_body": "changed", "cpp_body": "changed", "yaml_value": "changed",
}  # fmt: skip


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tree, list[Anchor]]:
    folder = tmp_path_factory.mktemp("torch")
    tree = sample.copy(folder)
    return folder, tree, sample.anchors(tree)


def test_an_unchanged_copy_reports_nothing(
    torch: tuple[Path, Tree, list[Anchor]], tmp_path: Path
) -> None:
    _, tree, anchors = torch
    assert len(anchors) > 300
    findings = compare(anchors, tree, sample.copy(tmp_path / "again"))
    assert {finding.verdict for finding in findings} == {"unchanged"}


@pytest.mark.slow
def test_mutations_are_found_where_they_are_and_nowhere_else(
    torch: tuple[Path, Tree, list[Anchor]], tmp_path: Path
) -> None:
    folder, tree, anchors = torch
    made = mutations(tree, SEED, EACH)
    meant = [mutation for mutation in made if not mutation.neutral]
    assert len(meant) >= 40
    problems, found = [], Counter[str]()
    for number, mutation in enumerate(made):
        other = sample.apply(mutation, folder, tmp_path / str(number))
        for finding in compare(anchors, tree, other):
            reported = finding.differs
            touched = sample.touches(mutation, finding.anchor)
            where = f"{mutation.kind} of {mutation.file}:{mutation.symbol}"
            if reported != touched:
                word = "false alarm" if reported else "missed"
                problems.append(f"{word}: {finding.anchor.target} {finding.verdict}, {where}")
            found[mutation.kind] += reported
            own = finding.anchor.target == f"{mutation.file}:{mutation.symbol}"
            wanted = EXPECTED.get(mutation.kind)
            if touched and own and wanted and finding.verdict != wanted:
                problems.append(f"{finding.verdict} instead of {wanted}: {where}")
    assert not problems, "\n".join(problems)
    kinds = {mutation.kind for mutation in meant}
    assert all(found[kind] for kind in kinds), found
    assert not any(found[kind] for kind in {mutation.kind for mutation in made} - kinds)
