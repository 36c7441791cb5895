"""The text part of a mail, made of its HTML."""

import re

from bs4 import BeautifulSoup
from bs4.element import NavigableString

# Elements that start on a new line, and those set apart by a blank line.
LINES = ["br", "tr", "div", "li", "ul", "ol", "table", "hr"]
PARAGRAPHS = ["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"]
UNSEEN = 'head, style, script, title, template, textarea, [data-only="html"]'

# Conditions for Outlook; the parser refuses those that it does not know.
_CONDITION = re.compile(r"<!\[(?!endif\]--)[^>]*>?")
_SPACES = re.compile(r"\s+")
_GAPS = re.compile(r"\n{3,}")


def plain_text(html: str) -> str:
    """Return the readable text of an HTML mail; a link is followed by its bare address.

    Elements with the attribute `data-only="html"` are left out.
    """
    soup = BeautifulSoup(_CONDITION.sub("", html), "html.parser")
    for unseen in soup.select(UNSEEN):
        unseen.decompose()
    for text in soup.find_all(string=True):
        if type(text) is NavigableString:  # not a comment
            text.replace_with(_SPACES.sub(" ", text))
    for link in soup.find_all("a", href=True):
        address, label = str(link["href"]), link.get_text().strip()
        if label != address:
            link.append(f":\n{address}\n" if label else address)
    for item in soup.find_all("li"):
        item.insert(0, "- ")
    for names, gap in ((LINES, "\n"), (PARAGRAPHS, "\n\n")):
        for element in soup.find_all(names):
            element.insert_before(gap)
            if element.name != "br":
                element.insert_after(gap)
    lines = (_SPACES.sub(" ", line).strip() for line in soup.get_text().split("\n"))
    return _GAPS.sub("\n\n", "\n".join(lines)).strip() + "\n"
