"""Finding definitions in an installed torch: Python, C++ headers, YAML entries."""
