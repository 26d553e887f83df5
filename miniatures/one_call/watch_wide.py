"""Stepping through calls that not every processor can make; what is not shown is said."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from insidetorch.errors import BookError
from miniatures.one_call.watch_steps import CannotStep, Step, steps


def steps_or_why(
    *statements: str,
    setup: str = "",
    decode: str = "",
    environment: Mapping[str, str] | None = None,
) -> list[list[Step]]:
    """Return what `steps` returns; where it has nothing to show, print why and return no traces.

    That is so where the processor or the system does not let the statements be stepped through,
    and there is no recording of them with this release of torch.

    :raises BookError: the statements fail.
    """
    try:
        return steps(*statements, setup=setup, decode=decode, environment=environment)
    except BookError as problem:
        if not isinstance(problem.__context__, CannotStep):
            raise
        release = torch.__version__.partition("+")[0]
        print(
            f"Not shown here: the calls were not run ({problem.__context__}), "
            f"and there is no recording of them with torch {release}."
        )
        return []
