"""The text part of a mail, derived from its HTML (spec 01 §9)."""

import re
from contextlib import suppress
from html.parser import HTMLParser

# What starts on a line of its own, and what is set apart by an empty line.
LINES = frozenset({"br", "tr", "div", "li", "ul", "ol", "table", "hr"})
PARAGRAPHS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"})
UNSEEN = frozenset({"head", "style", "script", "title", "template"})
VOID = frozenset({"br", "hr", "img", "meta", "link", "input", "wbr", "col", "area", "base"})

_SPACES = re.compile(r"[^\S\n]+")
_GAPS = re.compile(r"\n{3,}")


def plain_text(html: str) -> str:
    """Return what an HTML mail says, in lines; a link is followed by its bare address.

    What has the attribute `data-only="html"` is left out. HTML that is no HTML any more ends the
    text where it begins.
    """
    reader = _Reader()
    with suppress(AssertionError):  # html.parser's answer to `<![` and the like
        reader.feed(html)
        reader.close()
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(reader.parts).split("\n"))
    return _GAPS.sub("\n\n", "\n".join(lines)).strip() + "\n"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen: list[str] = []
        self._address = ""
        self._label_from = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if self._unseen or tag in UNSEEN or given.get("data-only") == "html":
            # Only elements of the same name are counted, so that a forgotten end tag of another
            # one does not hide the rest of the mail.
            if tag not in VOID and (not self._unseen or tag == self._unseen[-1]):
                self._unseen.append(tag)
            return
        self._break(tag)
        if tag == "li":
            self.parts.append("- ")
        if tag == "a":
            self._address, self._label_from = given.get("href") or "", len(self.parts)

    def handle_endtag(self, tag: str) -> None:
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

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(" ".join(re.split(r"\s+", data)))

    def _break(self, tag: str) -> None:
        if tag in PARAGRAPHS:
            self.parts.append("\n\n")
        elif tag in LINES:
            self.parts.append("\n")
