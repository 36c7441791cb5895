"""A condition for many keys, passed as one parameter."""

from typing import Any

from sqlalchemy import ColumnElement, bindparam
from sqlalchemy.orm import InstrumentedAttribute


def among(key: InstrumentedAttribute[Any], parameter: str) -> ColumnElement[bool]:
    """Return the condition that `key` is in the list bound to `parameter`."""
    return key.in_(bindparam(parameter, expanding=True))
