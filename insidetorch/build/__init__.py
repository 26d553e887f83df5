"""What builds the book: execution, cache, staging, rendering, and the commands around them."""

import sys

# JupyterLab's dependencies bring `rfc3987_syntax`, which compiles a grammar for over a second
# whenever jsonschema is imported. The build validates no address against it, and jsonschema
# does without it when it cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
