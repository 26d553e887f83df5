"""Settings of all tests: a property is tested for what it returns, not for its speed."""

from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")
