"""`python -m insidetorch`: the commands of the book."""

from insidetorch.build.cli import main

if __name__ == "__main__":
    main()
