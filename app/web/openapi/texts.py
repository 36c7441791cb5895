"""Docstrings as the document shows them: without references to internal specs and decisions."""

import inspect
import re

INTERNAL_REFERENCES = re.compile(r"\s*\((?:decisions?|spec)\b[^()]*\)")


def paragraphs(documented: object) -> list[str]:
    """Return the paragraphs of a docstring; none without one."""
    text = INTERNAL_REFERENCES.sub("", inspect.getdoc(documented) or "")
    return [paragraph for part in text.split("\n\n") if (paragraph := part.strip())]


def headline(documented: object) -> str:
    """Return the first sentence as plain text on one line."""
    first = next(iter(paragraphs(documented)), "")
    return " ".join(first.replace("`", "").split()).rstrip(".")


def camel_case(name: str) -> str:
    """Return a snake_case name in camelCase, as most client languages spell it."""
    first, *others = name.split("_")
    return "".join((first, *(word.capitalize() for word in others)))
