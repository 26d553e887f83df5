"""The miniature fuser against Inductor: the same loop nests, the same fusions, the same values."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from miniatures.inductor.cases import random_inputs, random_program
from miniatures.inductor.emit_c import Fused, build, emit
from miniatures.inductor.watch import private_caches, stages

private_caches()
PROGRAMS = 200
some_and_many = pytest.mark.parametrize(
    "seeds",
    [range(5000, 5008), pytest.param(range(PROGRAMS), marks=pytest.mark.slow)],
    ids=["some", "many"],
)


@pytest.mark.slow  # Inductor's own import takes seconds
@some_and_many
def test_the_same_nests_are_fused(seeds: range) -> None:
    differing = []
    for seed in seeds:
        program, inputs = random_program(seed, size=3 + seed % 8), random_inputs(seed)
        mine, theirs = Fused(program, *inputs), stages(program, *inputs)
        if (len(mine.stored), mine.groups()) != (len(theirs.nests), theirs.groups):
            differing.append((seed, mine.groups(), theirs.groups))
    assert not differing


@some_and_many
@pytest.mark.parametrize("exact", [True, False])
def test_the_same_values(tmp_path: Path, exact: bool, seeds: range) -> None:
    cases = []
    for seed in seeds:
        program, inputs = random_program(1000 + seed, exact=exact), random_inputs(seed)
        cases.append((f"p{seed}_", program, inputs, Fused(program, *inputs)))
    library = build("".join(emit(fused.nests, name) for name, _, _, fused in cases), tmp_path)
    for name, program, inputs, fused in cases:
        for mine, theirs in zip(fused.run(library, inputs, name), program(*inputs), strict=True):
            if exact:
                assert torch.equal(mine, theirs), name
            else:
                torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-4)


def test_a_library_is_compiled_once(tmp_path: Path) -> None:
    source = emit(Fused(random_program(3), *random_inputs(3)).nests)
    build(source, tmp_path)
    (file,) = tmp_path.iterdir()
    made = file.stat().st_mtime_ns
    build(source, tmp_path)
    assert [one.stat().st_mtime_ns for one in tmp_path.iterdir()] == [made]


def test_programs_differ_enough() -> None:
    counts = [
        (len(fused.stored), len(fused.nests), sum(bool(nest.parts) for nest in fused.nests))
        for seed in range(PROGRAMS)
        if (fused := Fused(random_program(seed), *random_inputs(seed)))
    ]
    assert sum(before > after > 1 for before, after, _ in counts) > 40
    assert sum(parts > 0 for _, _, parts in counts) > 40
    assert sum(before == after > 1 for before, after, _ in counts) > 5
