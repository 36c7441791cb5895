"""Which keys the stored secrets were made with, and whether those keys are available."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, case, func, literal, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.crypto.secret_box import VERSION, SecretBox, SecretUnreadable

SEALED = f"{VERSION}:"


@dataclass(frozen=True)
class KeyUse:
    """How many values were made with which key, by key id; "" stands for an unknown format.

    `unusable_key_ids` are those whose values cannot be opened: no key has that id, or a different
    key has. For a hash, the latter cannot be detected.
    """

    secrets: Counter[str] = field(default_factory=Counter)
    hashes: Counter[str] = field(default_factory=Counter)
    unusable_key_ids: set[str] = field(default_factory=set)

    def add_secrets(self, box: SecretBox, sealed_by_row: Mapping[str, str]) -> None:
        """Count the sealed values of rows with these names."""
        for row, sealed in sealed_by_row.items():
            self._add_secrets(box, sealed, row, 1)

    def add_column(
        self,
        box: SecretBox,
        session: Session,
        column: InstrumentedAttribute[Any],
        owner: InstrumentedAttribute[Any],
        row_of: Callable[[Any], str],
    ) -> None:
        """Count the sealed values in a column; one value per key is opened.

        `row_of` derives the name of a value's row from the column `owner`.
        """
        key_id = case(
            (func.substr(column, 1, len(SEALED)) == SEALED, _first(column, session, len(SEALED))),
            else_="",
        )
        groups = select(func.count(), func.min(column)).where(column.is_not(None)).group_by(key_id)
        for count, sample in session.execute(groups).all():
            found = session.execute(select(owner).where(column == sample).limit(1)).first()
            if found is not None:  # else it has just been deleted
                self._add_secrets(box, sample, row_of(found[0]), count)

    def add_hashes(
        self, box: SecretBox, session: Session, column: InstrumentedAttribute[str], *conditions: Any
    ) -> None:
        """Count the keyed hashes in a column."""
        key_id = _first(column, session)
        groups = select(key_id, func.count()).where(*conditions).group_by(key_id)
        for name, count in session.execute(groups).all():
            self.hashes[name] += count
            if not box.knows(name):
                self.unusable_key_ids.add(name)

    def _add_secrets(self, box: SecretBox, sealed: str, row: str, count: int) -> None:
        key_id = sealed.split(":")[1] if sealed.startswith(SEALED) else ""
        self.secrets[key_id] += count
        try:
            box.open(sealed, row)
        except SecretUnreadable:
            self.unusable_key_ids.add(key_id)


def _first(
    column: InstrumentedAttribute[Any], session: Session, after: int = 0
) -> ColumnElement[str]:
    """Return the part of a text up to its first colon, skipping the first `after` characters."""
    bind = session.get_bind()
    rest = func.substr(column, after + 1)
    place = func.instr if bind.dialect.name == "sqlite" else func.strpos
    return func.substr(rest, 1, place(rest.op("||")(literal(":")), ":") - 1)
