"""The book as data: its files, chapters, cache keys, ledger and lock."""
