"""Batched lookups by key, for reads that nearly every request makes.

On PostgreSQL the round trip costs several times what the read does. So while one such read is in
flight, those that arrive meanwhile are collected and then made by one statement. Each is still made
after it was requested, and nobody waits unless another read is in flight.
"""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

from sqlalchemy import ARRAY, Select, any_, bindparam
from sqlalchemy.orm import InstrumentedAttribute

from app.core import wait_times
from app.core.database.prepared import Prepared, Row, constant

T = TypeVar("T")
Key = str | int


@dataclass(frozen=True, eq=False)
class Lookup:
    """A SELECT whose rows are found by the column `key`.

    For a key with more than `most` rows, only that many, or some more, are found; None: all.
    """

    statement: Select[*tuple[Any, ...]]
    key: InstrumentedAttribute[Any]
    most: int | None = None
    one: Prepared = field(init=False)
    many: Prepared = field(init=False)

    def __post_init__(self) -> None:
        one = self.statement.where(self.key == bindparam("key"))
        keys = bindparam("keys", type_=ARRAY(self.key.type))
        many = self.statement.add_columns(self.key).where(self.key == any_(keys))
        if self.most is not None:
            # SQLite's dialect would add an offset as a parameter.
            one = one.limit(constant(self.most)).offset(constant(0))
            many = many.limit(constant(self.most_together)).offset(constant(0))
        object.__setattr__(self, "one", Prepared(one, ("key",)))
        object.__setattr__(self, "many", Prepared(many, ("keys",)))

    @property
    def most_together(self) -> int:
        """How many rows `many` finds at most; a result of that size may be incomplete."""
        return sys.maxsize if self.most is None else 4 * self.most


class _Call:
    """One caller's request; `found` is None as long as nobody has read for it."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.found: Mapping[Key, list[Row]] | None = None
        self.leads = False
        self.turn = threading.Event()


class BatchedReads:
    """Reads a single key with `read_one`, and keys that have queued up meanwhile with `read_many`.

    The latter returns None if they have too many rows to be read together.
    """

    def __init__(
        self,
        read_one: Callable[[Key], list[Row]],
        read_many: Callable[[Sequence[Key]], Mapping[Key, list[Row]] | None],
    ) -> None:
        self._read_one = read_one
        self._read_many = read_many
        self._lock = threading.Lock()
        self._waiting: list[_Call] = []
        self._is_reading = False

    def rows(self, key: Key) -> list[Row]:
        """Return the rows with this key."""
        with self._lock:
            is_first, self._is_reading = not self._is_reading, True
            if not is_first:
                call = _Call(key)
                self._waiting.append(call)
        if is_first:
            return self._read_then_pass_on(lambda: self._read_one(key))
        began = perf_counter()
        try:
            call.turn.wait()
        except BaseException:
            self._leave(call)
            raise
        finally:
            wait_times.add_database(perf_counter() - began)
        if call.leads:
            self._read_then_pass_on(self._read_waiting)
        # A failed batch fails only its leader: whoever got nothing reads for itself.
        return self._read_one(key) if call.found is None else call.found.get(key, [])

    def _read_then_pass_on(self, read: Callable[[], T]) -> T:
        try:
            return read()
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].turn.set()
            else:
                self._is_reading = False

    def _leave(self, call: _Call) -> None:
        """Stop waiting, e.g. after a timeout; if it is this call's turn, pass that on."""
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
        if call.leads:
            self._pass_on()

    def _read_waiting(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        try:
            found = self._read_many([call.key for call in calls])
            for call in calls:
                call.found = found
        finally:
            for call in calls[1:]:
                call.turn.set()
