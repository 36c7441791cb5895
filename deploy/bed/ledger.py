"""What the clients of a run were told, and whether the audit log agrees: nothing lost or doubled.

A change answered with success is there exactly once. One answered with a 5xx, or not at all, may
be there once or not. One that was refused, or that nobody requested, is not there. Each attempt is
tagged with a unique user agent, so that a doubled change cannot make up for a lost one.
"""

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import sqlalchemy as sa

from app.audit.models import Action, AuditEntry
from app.core.runtime import Runtime
from tests.support.api import Answer

MAX_VIOLATIONS = 20
ALARM = Action.USER_REFRESH_TOKEN_REUSE_DETECTED
# Audited although nothing was changed.
NO_CHANGES = (Action.USER_MFA_CHALLENGE_FAILED, Action.USER_LOGIN_FAILED)


@dataclass(frozen=True)
class Failure:
    """An answer of 500 or above: when it came, in monotonic seconds, and to which kind of actor."""

    ended: float
    status: int
    code: str
    request: str
    actor: str

    def __str__(self) -> str:
        return f"{self.actor}: {self.request} -> {self.status} {self.code}"


@dataclass(frozen=True)
class Change:
    """A change that was made or may have been; `user_id` is None if the client cannot know it."""

    user_id: int | None
    is_certain: bool


@dataclass
class Ledger:
    """Shared by all clients of a run."""

    answers: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    phase: str = ""
    _failures: list[Failure] = field(default_factory=list)
    _longest: float = 0.0
    _changes: dict[tuple[str, str], Change] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_answer(self, began: float, actor: str, answer: Answer) -> None:
        """Count an answer."""
        now = time.monotonic()
        with self._lock:
            self.answers[f"{answer.status // 100}xx"] += 1
            self._longest = max(self._longest, now - began)
            if answer.status >= 500:
                request = f"{answer.method} {answer.path}"
                self._failures.append(Failure(now, answer.status, answer.code, request, actor))

    def take_failures(self) -> tuple[list[Failure], float]:
        """Return the failures since the last call, and how long the slowest answer took (s)."""
        with self._lock:
            found = self._failures, self._longest
            self._failures, self._longest = [], 0.0
        return found

    def record_change(
        self, tag: str, action: Action, *, is_certain: bool, user_id: int | None = None
    ) -> None:
        """Record an audited change that succeeded (`is_certain`), or may have."""
        with self._lock:
            self._changes[tag, action] = Change(user_id, is_certain)

    def add_violation(self, what: str) -> None:
        """Record that an invariant is broken; repetitions are dropped."""
        violation = f"{self.phase}: {what}"
        with self._lock:
            if violation not in self.violations and len(self.violations) < MAX_VIOLATIONS:
                self.violations.append(violation)

    def compare(self, rt: Runtime) -> int:
        """Compare with the audit log; return the number of changes certain to have been made."""
        found = _entries(rt)
        for (tag, action), change in self._changes.items():
            users = found.pop((tag, action), [])
            what = f"{action} by {tag}"
            if not users and change.is_certain:
                self.add_violation(f"lost: {what}")
            elif len(users) > 1:
                self.add_violation(f"doubled: {len(users)} rows of {what}")
            elif change.user_id is not None and users not in ([], [change.user_id]):
                self.add_violation(f"somebody else's: {what}, {users}")
        for (agent, action), users in found.items():
            what = f"{action} by {agent}"
            self.add_violation(f"not asked for, or refused: {len(users)} rows of {what}")
        return sum(change.is_certain for change in self._changes.values())


def _entries(rt: Runtime) -> dict[tuple[str | None, str], list[int]]:
    """Return the user ids in the audit log, by tag and action.

    Entries without a user (id 0) are left out: the service itself or an operator caused them; and
    those without a tag: they are older than the run.
    """
    columns = AuditEntry.user_agent, AuditEntry.action, AuditEntry.user_id
    statement = sa.select(*columns).where(
        AuditEntry.user_id != 0,
        AuditEntry.user_agent.is_not(None),
        AuditEntry.action.not_in(NO_CHANGES),
    )
    found = defaultdict(list)
    with rt.reading() as connection:
        for tag, action, user_id in connection.execute(statement):
            found[tag, action].append(user_id)
    return found
