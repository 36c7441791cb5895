"""Tokenises HTML in a single pass, however malformed it is.

It follows browsers (WHATWG HTML, 13.2.5) as far as mails need it. The standard library's parser
rescans the rest of the text for every construct that is never closed; here an unclosed construct
consumes the rest of the text, so that nothing is scanned twice.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Their content is neither markup nor readable text; only the matching end tag ends it.
RAW = frozenset({"style", "script", "title", "textarea"})

_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*))?)?"""
)
_CLOSE = re.compile(r"[\s/]*>")
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}
# No character needs this many digits, and int() refuses to parse several thousand of them.
_LONG_REFERENCE = re.compile(r"&#(?:[0-9]|[xX][0-9a-fA-F])[0-9a-fA-F]{8,};?")


@dataclass(frozen=True)
class Start:
    """A start tag; an attribute without a value maps to an empty string."""

    tag: str
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class End:
    """An end tag."""

    tag: str


def pieces(markup: str) -> Iterator[Start | End | str]:
    """Yield tags and the text between them, in order."""
    at = 0
    while (opened := markup.find("<", at)) >= 0:
        if opened > at:
            yield _unescaped(markup[at:opened])
        piece, end = _piece_at(markup, opened)
        if end is None:
            return
        if piece is not None:
            yield piece
        at = end
    if at < len(markup):
        yield _unescaped(markup[at:])


def _piece_at(markup: str, opened: int) -> tuple[Start | End | str | None, int | None]:
    """Return what a `<` begins (None: a comment) and where that ends (None: never)."""
    name = _NAME.match(markup, opened)
    if name is None:
        if markup[opened + 1 : opened + 2] in {"!", "?", "/"}:
            return None, _end_of_comment(markup, opened)
        return "<", opened + 1
    tag = name[1].lower()
    attributes, end = _attributes(markup, name.end())
    if markup.startswith("</", opened):
        return End(tag), end
    if tag in RAW and end is not None:
        closing = _RAW_END[tag].search(markup, end)
        end = closing.start() if closing else None
    return Start(tag, attributes), end


def _end_of_comment(markup: str, opened: int) -> int | None:
    """Return where a comment, or what counts as one, ends; None: never."""
    closing = "-->" if markup.startswith("<!--", opened) else ">"
    # The closing may overlap the opening: `<!-->` is a complete comment.
    found = markup.find(closing, opened + 2)
    return None if found < 0 else found + len(closing)


def _attributes(markup: str, at: int) -> tuple[dict[str, str], int | None]:
    """Return the attributes of a tag and where it ends; None: never."""
    found: dict[str, str] = {}
    while attribute := _ATTRIBUTE.match(markup, at):
        values = (value for value in attribute.groups()[1:] if value is not None)
        found.setdefault(attribute[1].lower(), _unescaped(next(values, "")))
        at = attribute.end()
    closing = _CLOSE.match(markup, at)
    return found, closing.end() if closing else None


def _unescaped(text: str) -> str:
    return html.unescape(_LONG_REFERENCE.sub("\N{REPLACEMENT CHARACTER}", text))
