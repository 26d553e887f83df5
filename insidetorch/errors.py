"""The one exception a reader of the book may see."""


class BookError(Exception):
    """Something the reader or author can mend, told in one sentence: what, where, what to do."""
