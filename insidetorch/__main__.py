"""`python -m insidetorch`: the commands of the book."""

from insidetorch.commands import main
from insidetorch.run.entry import heed_signals, spare_grammar

if __name__ == "__main__":
    spare_grammar()
    heed_signals()
    main()
