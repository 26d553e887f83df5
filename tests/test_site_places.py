"""Where a label leads."""

from __future__ import annotations

from docutils.core import publish_doctree

from insidetorch.site.places import sections

PAGE = """
Page
####

.. _above:

One
===

.. _within:

Words.

Deeper
------

.. image:: x.png
   :name: pictured

Two
===
"""


def test_an_anchor_stands_in_the_section_that_is_nearest_above_it() -> None:
    document = publish_doctree(PAGE, settings_overrides={"doctitle_xform": False})
    found = sections(document)
    assert found["above"] == found["one"] == found["within"] == ("One", 1)
    assert found["deeper"] == found["pictured"] == ("Deeper", 2)
    assert found["two"] == ("Two", 3) and found["page"] == ("Page", 0)
