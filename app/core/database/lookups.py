"""Lookups by key, for reads that nearly every request makes."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, bindparam
from sqlalchemy.orm import InstrumentedAttribute

from app.core.database.prepared import Prepared

Key = str | int


@dataclass(frozen=True, eq=False)
class Lookup:
    """A SELECT whose rows are found by the column `key`; of more than `most`, only that many."""

    statement: Select[*tuple[Any, ...]]
    key: InstrumentedAttribute[Any]
    most: int | None = None
    one: Prepared = field(init=False)

    def __post_init__(self) -> None:
        one = self.statement.where(self.key == bindparam("key")).limit(self.most)
        object.__setattr__(self, "one", Prepared(one, ("key",)))
