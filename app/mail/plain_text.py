"""The text part of a mail, derived from its HTML (spec 01 §9)."""

import re
from collections.abc import Mapping

from app.mail import markup
from app.mail.markup import End, Start

# Elements that start on a new line, and those set apart by a blank line.
LINES = frozenset({"br", "tr", "div", "li", "ul", "ol", "table", "hr"})
PARAGRAPHS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"})
UNSEEN = frozenset({"head", "style", "script", "title", "template"})
VOID = frozenset({"br", "hr", "img", "meta", "link", "input", "wbr", "col", "area", "base"})

_SPACES = re.compile(r"[^\S\n]+")
_GAPS = re.compile(r"\n{3,}")


def plain_text(html: str) -> str:
    """Return the readable text of an HTML mail; a link is followed by its bare address.

    Elements with the attribute `data-only="html"` are left out.
    """
    reader = _Reader()
    for piece in markup.pieces(html):
        reader.read(piece)
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(reader.parts).split("\n"))
    return _GAPS.sub("\n\n", "\n".join(lines)).strip() + "\n"


class _Reader:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self._unseen: list[str] = []
        self._address = ""
        self._label_from = 0

    def read(self, piece: Start | End | str) -> None:
        """Add the text of the next piece."""
        if isinstance(piece, Start):
            self._start(piece.tag, piece.attributes)
        elif isinstance(piece, End):
            self._end(piece.tag)
        elif not self._unseen:
            self.parts.append(" ".join(re.split(r"\s+", piece)))

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._unseen or tag in UNSEEN or attributes.get("data-only") == "html":
            # Only nested elements of the same name are tracked, so that a missing end tag of
            # another one does not hide the rest of the mail.
            if tag not in VOID and (not self._unseen or tag == self._unseen[-1]):
                self._unseen.append(tag)
            return
        self._break(tag)
        if tag == "li":
            self.parts.append("- ")
        if tag == "a":
            self._address, self._label_from = attributes.get("href", ""), len(self.parts)

    def _end(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
            return
        if tag == "a" and self._address:
            label = "".join(self.parts[self._label_from :]).strip()
            if label != self._address:
                self.parts.append(f":\n{self._address}\n" if label else self._address)
            self._address = ""
        self._break(tag)

    def _break(self, tag: str) -> None:
        if tag in PARAGRAPHS:
            self.parts.append("\n\n")
        elif tag in LINES:
            self.parts.append("\n")
