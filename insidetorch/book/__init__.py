"""The book as data: its files, chapters, ledger and lock, and whether a chapter runs again.

`reach` says what of the toolkit and the miniatures a chapter's cells reach, `cache_key` makes one
hash of it, `cache` keeps outputs by that hash.
"""
