"""The HTML of a mail: its placeholders, and what somebody reads of it."""

import re
from collections.abc import Mapping
from typing import cast

from lxml import etree

PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_MARK = "the-value-of-a-placeholder"


def filled(text: str, values: Mapping[str, str]) -> str:
    """Fill all placeholders in a single pass: one inside a value stays plain text."""
    return PLACEHOLDER.sub(lambda mark: values.get(mark[1], mark[0]), text)


def shows(html: str, name: str) -> bool:
    """Return whether readers of a mail see the value of a placeholder, or follow it as a link.

    They see none in a comment, in the head, or in one that is misspelt.
    """
    return _MARK in plain_text(filled(html, {name: _MARK}))


# How elements are set apart: by a new line, or by a blank one.
GAPS = {
    **dict.fromkeys(["br", "tr", "div", "li", "ul", "ol", "table", "hr"], "\n"),
    **dict.fromkeys(["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"], "\n\n"),
}
UNSEEN = {"head", "style", "script", "title", "template", "textarea"}

_SPACES = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")


def plain_text(html: str) -> str:
    """Return the readable text of an HTML mail; a link is followed by its bare address.

    Elements with the attribute `data-only="html"` are left out. Takes time in proportion to the
    length, however malformed the HTML is: an operator may have written it.
    """
    parser = etree.HTMLParser(target=_PlainText())
    parser.feed(html)
    return cast("str", parser.close())


class _PlainText:
    """Turns a parser's events into text; the parser ends every element that it has started."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._unseen = 0  # how many elements around this place, from the outermost unseen one on
        self._link: tuple[str, int] | None = None  # its address, and the piece its label begins at

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._unseen or tag in UNSEEN or attributes.get("data-only") == "html":
            self._unseen += 1
            return
        if tag == "a":
            self._end_link()
            if "href" in attributes:
                self._link = attributes["href"], len(self._pieces)
        self._pieces.append(GAPS.get(tag, ""))
        if tag == "li":
            self._pieces.append("- ")

    def end(self, tag: str) -> None:
        if self._unseen:
            self._unseen -= 1
            return
        if tag == "a":
            self._end_link()
        if tag != "br":
            self._pieces.append(GAPS.get(tag, ""))

    def data(self, text: str) -> None:
        if not self._unseen:
            self._pieces.append(_SPACES.sub(" ", text))

    def close(self) -> str:
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._pieces).split("\n"))
        return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip() + "\n"

    def _end_link(self) -> None:
        if self._link is not None:
            address, begin = self._link
            label = "".join(self._pieces[begin:]).strip()
            if label != address:
                self._pieces.append(f":\n{address}\n" if label else address)
            self._link = None
