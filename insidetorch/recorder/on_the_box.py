"""Record the CUDA cells of Inside PyTorch on this machine. Nothing is installed or downloaded.

It needs a GPU and a Python that has torch; everything else is in this folder. After each chapter
the recordings go into recordings.tar.gz beside this file: send that back, and run `make
record-import` with it in a checkout of the book. Run it again after an interruption, and it goes on
where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path


def main() -> None:
    """Unpack the wheels beside this file, record, and write the archive."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="*", help="only these chapters")
    parser.add_argument("--all", action="store_true", help="record current cells again")
    parser.add_argument("--retry", action="store_true", help="try the cells that failed before")
    parser.add_argument("--limit", type=float, default=300, help="seconds a cell may take")
    parser.add_argument(
        "--archive", type=Path, default=here / "recordings.tar.gz", help="where it goes"
    )
    given = parser.parse_args()
    about = json.loads((here / "bundle.json").read_text(encoding="utf-8"))
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != about["python"]:
        sys.exit(
            f"This bundle is for Python {about['python']} and runs on {running}; make one with "
            f"`make record-bundle BOX_PYTHON={running}`, or use another Python."
        )
    if importlib.util.find_spec("torch") is None:
        sys.exit(f"{sys.executable} has no torch; run this with a Python that has it.")
    packages = here / "packages"
    _unpack(here / "wheels", packages)
    sys.path[:0] = [str(here), str(packages)]

    from insidetorch.errors import BookError
    from insidetorch.processes import python_path
    from insidetorch.recorder import bundle, record

    os.environ["PYTHONPATH"] = python_path(here, packages)

    scripts = [record.Script(s["doc"], tuple(s["cells"])) for s in about["scripts"]]
    archive, cells = given.archive, list[str]()
    try:
        digests = bundle.all_digests(scripts, here)
        archive.parent.mkdir(parents=True, exist_ok=True)

        def export() -> None:
            cells[:] = bundle.export(here, digests, archive)

        outcome = record.record(
            scripts, here, chapters=given.chapters, everything=given.all, retry=given.retry,
            limit=given.limit, book_commit=about["book_commit"], after_chapter=export,
        )  # fmt: skip
        export()
    except BookError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"Interrupted; {archive} holds what was recorded. Run it again to go on.")
    record.report(outcome, print)
    print(
        f"{archive} holds {len(cells)} recordings, {archive.stat().st_size:,} bytes: send it back"
    )
    sys.exit(1 if outcome.failed else 0)


def _unpack(wheels: Path, target: Path) -> None:
    if target.is_dir():
        return
    part = target.with_name("packages.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part)
    part.rename(target)


if __name__ == "__main__":
    main()
