"""`python -m insidetorch`: the commands of the book."""

import sys

# JupyterLab's dependencies bring `rfc3987_syntax`, which compiles a grammar for over a second
# whenever jsonschema is imported. The build validates no address against it, and jsonschema
# does without it when it cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from insidetorch.commands import main  # noqa: E402

if __name__ == "__main__":
    main()
