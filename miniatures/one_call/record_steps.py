"""Steps through the chapter's statements and writes their instructions into `recorded_steps`."""

from __future__ import annotations

import json

from miniatures.one_call.cases_stepped import CALLS, FORCED, KERNEL, SETUP, WIDE_CALLS
from miniatures.one_call.recorded_steps import store
from miniatures.one_call.watch_steps import request, stepped


def main() -> None:
    """Record every request of the chapter again, with the torch that is installed."""
    wide = {"ATEN_CPU_CAPABILITY": "avx512"}
    requests = [
        (request(*CALLS.values(), setup=SETUP, decode=KERNEL), {}),
        (request(*WIDE_CALLS.values(), setup=SETUP + FORCED, decode=KERNEL), wide),
    ]
    store({(asked, json.dumps(had)): stepped(asked, had) for asked, had in requests})


if __name__ == "__main__":
    main()
