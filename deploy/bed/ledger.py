"""What the clients of a run were told, and whether the rows agree: nothing lost, nothing doubled.

A change that was answered with success is there once. One whose answer was a 503 may be there,
once, or not. One that was refused is not there.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import sqlalchemy as sa

from app.audit.models import AuditEntry
from app.core.runtime import Runtime
from tests.support.api import Answer

# What decisions A29 and A30 answer when something is lost; nginx uses the first.
DOCUMENTED = frozenset({(503, "internal_server_error"), (503, "database.error")})
MOST_TOLD = 20


@dataclass(frozen=True)
class Failure:
    """An answer of 500 or above: when its request began and when it came, in monotonic seconds."""

    began: float
    ended: float
    status: int
    code: str
    request: str

    def __str__(self) -> str:
        return f"{self.request} -> {self.status} {self.code}"


@dataclass
class Ledger:
    """Shared by all clients of a run."""

    answers: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    longest: float = 0.0
    phase: str = ""
    _done: Counter[tuple[int, str]] = field(default_factory=Counter)
    _unclear: Counter[tuple[int, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, began: float, answer: Answer) -> None:
        """Count an answer."""
        now = time.monotonic()
        with self._lock:
            self.answers[f"{answer.status // 100}xx"] += 1
            self.longest = max(self.longest, now - began)
            if answer.status >= 500:
                request = f"{answer.method} {answer.path}"
                self.failures.append(Failure(began, now, answer.status, answer.code, request))

    def did(self, user_id: int, action: str, status: int) -> None:
        """Count an attempt at something that is audited, by its answer's status."""
        with self._lock:
            if status < 400:
                self._done[user_id, action] += 1
            elif status >= 500:
                self._unclear[user_id, action] += 1

    def complain(self, what: str) -> None:
        """Record that an invariant is broken."""
        with self._lock:
            if len(self.broken) < MOST_TOLD:
                self.broken.append(f"{self.phase}: {what}")

    def compare(self, rt: Runtime) -> int:
        """Compare with the audit log; return how many deeds were compared."""
        columns = AuditEntry.user_id, AuditEntry.action, sa.func.count()
        statement = sa.select(*columns).group_by(AuditEntry.user_id, AuditEntry.action)
        with rt.reading() as connection:
            found = {(user, action): n for user, action, n in connection.execute(statement)}
        told = self._done.keys() | self._unclear.keys()
        actions = {action for _, action in told}
        for user_id, action in told | {key for key in found if key[1] in actions}:
            least = self._done[user_id, action]
            most = least + self._unclear[user_id, action]
            rows = found.get((user_id, action), 0)
            if not least <= rows <= most:
                kind = "lost" if rows < least else "doubled"
                self.complain(
                    f"{kind}: {rows} rows of {action} by {user_id}, answered {least} to {most}"
                )
        return sum(self._done.values())
