"""Finding names by a part of them, whatever the letter case.

Databases fold the case of ASCII letters only, or as their locale says. So a name that may have any
letters has a second column for its folded form, which we fill in; it stays NULL for the many names
that are folded already.
"""

from typing import Any

from sqlalchemy import ColumnElement, func

from app.core.texts import folded


def folded_column(name: str | None) -> str | None:
    """Return what the column beside a name stores."""
    return None if name is None or (form := folded(name)) == name else form


def has_part(part: str, name: Any, name_folded: Any) -> ColumnElement[bool]:
    """Return the condition that a name contains a text; both columns are given."""
    either: ColumnElement[str] = func.coalesce(name_folded, name)
    return either.contains(folded(part), autoescape=True)
