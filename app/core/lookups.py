"""Rows by a unique key, for reads that nearly every request makes.

On PostgreSQL the round trip costs several times what the read does. So while one such read is under
way, those that come meanwhile are gathered and then read by one statement. Each is still read after
it was asked for, and nobody waits when nobody else reads.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ARRAY, Select, any_, bindparam
from sqlalchemy.orm import InstrumentedAttribute

from app.core.prepared import Prepared, Row


@dataclass(frozen=True, eq=False)
class Lookup:
    """A SELECT whose rows are found by `key`, a column that is unique among them."""

    statement: Select[*tuple[Any, ...]]
    key: InstrumentedAttribute[str]
    one: Prepared = field(init=False)
    many: Prepared = field(init=False)

    def __post_init__(self) -> None:
        one = self.statement.where(self.key == bindparam("key"))
        keys = bindparam("keys", type_=ARRAY(self.key.type))
        many = self.statement.add_columns(self.key).where(self.key == any_(keys))
        object.__setattr__(self, "one", Prepared(one, ("key",)))
        object.__setattr__(self, "many", Prepared(many, ("keys",)))


class _Call:
    """One caller's wish; `rows` is None as long as nobody has read for it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.rows: Mapping[str, Row] | None = None
        self.leads = False
        self.turn = threading.Event()


class GatheredReads:
    """Reads one key at a time with `read_one`, those that piled up meanwhile with `read_many`."""

    def __init__(
        self,
        read_one: Callable[[str], Row | None],
        read_many: Callable[[Sequence[str]], Mapping[str, Row]],
    ) -> None:
        self._read_one = read_one
        self._read_many = read_many
        self._lock = threading.Lock()
        self._waiting: list[_Call] = []
        self._is_reading = False

    def row(self, key: str) -> Row | None:
        """Return the row of this key; None if there is none."""
        with self._lock:
            is_first, self._is_reading = not self._is_reading, True
            if not is_first:
                call = _Call(key)
                self._waiting.append(call)
        if is_first:
            return self._read_then_pass_on(lambda: self._read_one(key))
        call.turn.wait()
        if call.leads:
            self._read_then_pass_on(self._read_waiting)
        # Nobody's failure is another's: who got nothing reads for itself.
        return self._read_one(key) if call.rows is None else call.rows.get(key)

    def _read_then_pass_on(self, read: Callable[[], Row | None]) -> Row | None:
        try:
            return read()
        finally:
            with self._lock:
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].turn.set()
                else:
                    self._is_reading = False

    def _read_waiting(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        try:
            rows = self._read_many([call.key for call in calls])
            for call in calls:
                call.rows = rows
        finally:
            for call in calls[1:]:
                call.turn.set()
