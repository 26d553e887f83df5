"""Formulas as MathML, written into the page while it is built: no script typesets them later."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

_ESCAPED = re.compile(r"\\[{}]")
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|split|align|eqnarray)\*?\}")
_ENVIRONMENT = re.compile(r"\\begin\{[a-zA-Z]+\*?\}")


class MathError(ValueError):
    """A formula that cannot be written as MathML; the message says which part."""


def to_mathml(latex: str, *, block: bool) -> str:
    r"""Return a formula as a MathML element.

    :param latex: the formula, without dollar signs. ``aligned``, ``split`` and ``align`` are
        set alike; lines split by ``\\`` outside of any environment are aligned too.
    :param block: set on a line of its own.
    :raises MathError: a command or environment is not known to latex2mathml.
    """
    source = latex.strip()
    braces = _ESCAPED.sub("", source)
    if braces.count("{") != braces.count("}"):
        raise MathError(f"latex2mathml needs balanced braces in {source!r}")
    if r"\\" in source and not _ENVIRONMENT.search(source):
        source = rf"\begin{{align*}}{source}\end{{align*}}"
    source = _ALIGNED.sub(r"\\\1{align*}", source)
    try:
        markup = convert(source, display="block" if block else "inline")
        root = ElementTree.fromstring(markup)
    except Exception as error:
        raise MathError(f"latex2mathml cannot convert {latex.strip()!r} ({error})") from error
    unknown = next((text for text in root.itertext() if text.startswith("\\")), None)
    if unknown is not None:
        raise MathError(f"latex2mathml does not know {unknown} in {latex.strip()!r}")
    return markup


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    self.body.append(_element(node, block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with its number if it has a label."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_element(node, block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def _element(node: nodes.math | nodes.math_block, *, block: bool) -> str:
    try:
        return to_mathml(node.astext(), block=block)
    except MathError as error:
        logger.warning("%s; write it in other words.", error, location=node)
        return f"<code>{escape(node.astext())}</code>"
