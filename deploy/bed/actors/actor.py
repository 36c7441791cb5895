"""What all clients of a storm have in common."""

import http.client
import json
import random
import threading
import time
import traceback
from typing import Any

from werkzeug.datastructures import Headers

from app.audit.models import Action
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer
from tests.support.factories import KnownUser

PACE_SECONDS = 0.02
# nginx closes a connection that is idle for 75 s; a hang-up after this long is simply retried.
IDLE_SECONDS = 30.0
EXPIRED = "auth.token_expired"
WRONG_PASSWORD = "auth.credentials_failed"


class Actor(threading.Thread):
    """One client with one connection through the proxy; it repeats `step` until stopped."""

    user: KnownUser | None = None
    # How long it rests between two steps.
    pace = PACE_SECONDS

    def __init__(self, bed: Bed, ledger: Ledger, name: str) -> None:
        super().__init__(daemon=True, name=name)
        self.bed, self.ledger = bed, ledger
        self.stopped = threading.Event()
        self.dice = random.Random(name)
        self.client = bed.client()
        # `progress` grows with every success.
        self.steps = self.progress = self._tags = 0
        self._used_at = time.monotonic()

    def run(self) -> None:
        """Repeat `step` until stopped; any exception counts as a broken invariant."""
        while not self.stopped.wait(self.pace):
            try:
                self.step()
                self.steps += 1
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__} {str(error)[:300]} ({where.name}:{where.lineno})"
                self.check(holds=False, what=what)
                self.client.close()
                self.stopped.wait(0.5)
        self.close()

    def step(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def close(self) -> None:
        self.client.close()

    def compare(self) -> None:
        """Compare what this client was told with the database, after the storm."""

    def new_tag(self) -> str:
        """Return a unique user agent, by which the audit log tells attempts apart."""
        self._tags += 1
        return f"{self.name} {self._tags}"

    def call(
        self, method: str, path: str, body: Any = None, *, tag: str | None = None, **headers: str
    ) -> Answer:
        """Send a request and note its answer in the ledger."""
        sent = {"User-Agent": tag or self.new_tag()}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        began = time.monotonic()
        answer = self._answer(method, path, body, sent)
        self.ledger.record_answer(began, type(self).__name__, answer)
        self.progress += answer.status < 400
        return answer

    def change(
        self,
        action: Action,
        method: str,
        path: str,
        body: Any = None,
        *,
        tag: str | None = None,
        is_certain: bool = True,
        **headers: str,
    ) -> Answer:
        """Send a request that writes exactly one audit entry if it succeeds."""
        tag = tag or self.new_tag()
        answer = self.call(method, path, body, tag=tag, **headers)
        if answer.status < 400 or answer.status >= 500:
            is_certain &= answer.status < 400
            owner = self.user.id if self.user else None
            self.ledger.record_change(tag, action, user_id=owner, is_certain=is_certain)
        return answer

    def _answer(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        was_idle = time.monotonic() - self._used_at > IDLE_SECONDS
        try:
            return self.client.call(method, path, body, headers=headers)
        except http.client.IncompleteRead:
            self.client.close()
            return _no_answer(method, path, "cut off")
        except (http.client.BadStatusLine, ConnectionError):
            self.client.close()
            if not was_idle:
                return _no_answer(method, path, "hung up")
            return self.client.call(method, path, body, headers=headers)
        finally:
            self._used_at = time.monotonic()

    def check(self, holds: bool, what: str) -> None:
        """Complain unless `holds`."""
        if not holds:
            self.ledger.add_violation(f"{self.name}: {what}")


def _no_answer(method: str, path: str, code: str) -> Answer:
    """Return a 599 as a stand-in for a missing answer; like a 5xx it leaves the outcome open."""
    return Answer(method, path, 599, Headers(), json.dumps({"code": code}).encode())


class AccountHolder(Actor):
    """A client with an account that no other client uses."""

    user: KnownUser

    def __init__(self, bed: Bed, ledger: Ledger, *, role: str = "user") -> None:
        self.user = bed.make_user(role)
        super().__init__(bed, ledger, f"{type(self).__name__.lower()} {self.user.username}")
        # Passwords that may be in force: more than one while the outcome of a change is unknown.
        self.passwords = {self.user.password}
        self.is_signed_in = False

    def sign_in(self, tag: str | None = None) -> Answer:
        """Sign in with whichever password is in force; return the last answer."""
        # Twice: a change that was never answered may take effect between two tries.
        for password in 2 * sorted(self.passwords):
            body = {"identifier": self.user.username, "password": password}
            answer = self.change(Action.USER_LOGIN, "POST", "/auth/login", body, tag=tag)
            if answer.status == 200:
                self.passwords, self.is_signed_in = {password}, True
            if answer.code != WRONG_PASSWORD:
                break
        self.check(answer.status == 200 or answer.status >= 500, f"may not sign in: {answer}")
        return answer

    def forget(self) -> None:
        """Drop the cookies, whether or not the session has ended."""
        self.is_signed_in = False
        self.client.cookies = {}

    def leave(self, answer: Answer) -> None:
        """Sign in again when the session has expired, as it does when a clock is set forward."""
        self.check(answer.code == EXPIRED, f"was refused: {answer}")
        self.forget()

    def went_well(self, answer: Answer) -> bool:
        """Return whether a request succeeded; leave if it was refused."""
        if 400 <= answer.status < 500:
            self.leave(answer)
        return answer.status < 400
