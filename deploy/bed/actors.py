"""The clients of a storm: each acts as one kind of user, and checks what must hold for it."""

import http.client
import io
import json
import random
import re
import threading
import time
import traceback
from collections import Counter
from typing import Any

import sqlalchemy as sa
from PIL import Image
from redis import Redis
from redis.exceptions import RedisError
from werkzeug.datastructures import Headers

from app.audit.models import Action, AuditEntry
from app.contact_verification.models import ContactToken
from app.events.messages import Audience, Kind, Message, StorageEvent
from app.mail.models import OutboxMail
from app.store.redis import EVENTS_CHANNEL
from app.users.models import User
from deploy.bed.bed import Bed
from deploy.bed.ledger import ALARM, Ledger
from tests.support import images
from tests.support.api import Answer
from tests.support.authenticator import STEP_SECONDS
from tests.support.factories import KnownUser, configure, make_user
from tests.support.live import Connection, Front
from tests.support.streams import OpenStream

PACE_SECONDS = 0.02
# nginx closes a connection that is idle for 75 s; a hang-up after this long is simply retried.
IDLE_SECONDS = 30.0
# How long a busy machine may need after a fault until every stream has reported its gaps.
LATE_SECONDS = 15.0
EXPIRED = "auth.token_expired"
WRONG_PASSWORD = "auth.credentials_failed"
REUSED = "auth.refresh_token_reuse_detected"
# The answers to a refresh token that is spent, or whose session was revoked for its reuse.
SIGNED_OUT = {REUSED, "auth.refresh_token_stale", "auth.token_invalid"}
TAKEN = {"auth.username_exists", "auth.email_exists", "auth.identifier_exists"}
LISTS = ("/admin/users?keyword=made", "/admin/overview", "/admin/audit-logs", "/admin/config")
DOCUMENTS = ("/login", "/register", "/settings/security", "/admin/users")
FILES = re.compile(r'(?:href|src)="(/pages/[^"]+)"')
COLOURS = (images.RED, images.GREEN, images.BLUE, images.YELLOW)


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


class RegularUser(AccountHolder):
    """Signs in, reads and changes an account of its own, refreshes, signs out."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        # Names that may be in force: more than one while the outcome of a change is unknown.
        self.names: set[str | None] = {None}
        # A refresh of unknown outcome may have spent the token; using it again looks like theft.
        self.may_be_signed_out = False

    def step(self) -> None:
        """Do one thing, chosen at random."""
        if not self.is_signed_in:
            self.may_be_signed_out = False
            self.sign_in()
            return
        actions = [self.look] * 6 + [self.refresh] * 3 + [self.rename] * 3 + [self.list_sessions]
        self.dice.choice([*actions, self.change_password, self.sign_out])()

    def look(self) -> None:
        answer = self.call("GET", "/auth/me")
        if self.went_well(answer):
            name = answer.data["profile"]["display_name"]
            # What was answered with a 503 may still happen: seeing the old name rules nothing out.
            self.check(name in self.names, f"is called {name!r} instead of {self.names}")

    def rename(self) -> None:
        new = f"{self.user.username} {self.steps}"
        body = {"display_name": new}
        answer = self.change(Action.USER_UPDATE_PROFILE, "PATCH", "/auth/profile", body)
        if answer.status >= 500:
            self.names.add(new)
        elif self.went_well(answer):
            self.names = {new}

    def change_password(self) -> None:
        [old] = self.passwords
        new, before = f"password number {self.steps}", dict(self.client.cookies)
        body = {"current_password": old, "new_password": new}
        answer = self.change(Action.USER_CHANGE_PASSWORD, "PUT", "/auth/password", body)
        if answer.status >= 500:
            # It may have ended every session, including this one.
            self.passwords = {old, new}
            self.forget()
        elif self.went_well(answer):
            self.passwords, self.may_be_signed_out = {new}, False
            self.check_ended(before)
            self.check_wrong(old)

    def refresh(self) -> None:
        tag = self.new_tag()
        answer = self.call("POST", "/auth/refresh", tag=tag)
        is_clear = answer.status < 500
        if not is_clear or answer.code == REUSED:
            self.ledger.record_change(tag, ALARM, user_id=self.user.id, is_certain=is_clear)
        self.may_be_signed_out |= not is_clear
        if is_clear and self.went_well(answer):
            self.may_be_signed_out = False

    def list_sessions(self) -> None:
        answer = self.call("GET", "/auth/sessions")
        # The current session is recognised by its refresh token.
        if self.went_well(answer) and not self.may_be_signed_out:
            current = [session for session in answer.data if session["is_current"]]
            self.check(len(current) == 1, f"{len(current)} sessions are the current one")

    def sign_out(self) -> None:
        before = dict(self.client.cookies)
        # Nothing is left to end if a reuse alarm has already revoked the session.
        is_certain = not self.may_be_signed_out
        answer = self.change(Action.USER_LOGOUT, "POST", "/auth/logout", is_certain=is_certain)
        if answer.status >= 500:
            self.forget()
        elif self.went_well(answer):
            self.forget()
            self.check_ended(before)

    def check_ended(self, cookies: dict[str, str]) -> None:
        """Complain if the cookies of an ended session are still accepted."""
        kept, self.client.cookies = self.client.cookies, cookies
        for method, path in (("GET", "/auth/me"), ("POST", "/auth/refresh")):
            answer = self.call(method, path)
            self.check(answer.status == 401 or answer.status >= 500, f"has ended: {answer}")
        self.client.cookies = kept

    def check_wrong(self, password: str) -> None:
        """Complain if a replaced password is still accepted."""
        body = {"identifier": self.user.username, "password": password}
        kept, self.client.cookies = self.client.cookies, {}
        answer = self.call("POST", "/auth/login", body)
        is_refused = answer.code == WRONG_PASSWORD or answer.status >= 500
        self.check(is_refused, f"an old password: {answer}")
        self.client.cookies = kept

    def went_well(self, answer: Answer) -> bool:
        """Return whether a request succeeded; complain if the session was lost without a reason."""
        if answer.status < 400 or answer.status >= 500:
            return answer.status < 400
        if answer.code == EXPIRED and not answer.path.endswith("/refresh"):
            self.refresh()
            return False
        is_explained = self.may_be_signed_out and answer.code in SIGNED_OUT
        self.check(is_explained, f"is out without a reason: {answer}")
        self.forget()
        return False


class MfaUser(AccountHolder):
    """Signs in with a second factor; also tries wrong codes, and replays right ones."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        self.app = bed.give_totp(self.user)
        # The last time step whose code was tried, and the last whose code was accepted.
        self.tried_step = self.accepted_step = 0

    def step(self) -> None:
        """Sign in with the current code if it was not tried yet, else with a bad one."""
        tag, right_since = self.new_tag(), self.bed.clock_is_right_since
        answer = self.sign_in(tag)
        if answer.status != 200:
            return
        if answer.data["status"] != "mfa_required":
            self.check(holds=False, what=f"no second factor: {answer}")
            return
        flow_token, now = answer.data["flow_token"], self.app.clock.now()
        step, code = int(now.timestamp()) // STEP_SECONDS, self.app.at(now)
        if step <= self.tried_step:
            again = step == self.accepted_step and self.dice.random() < 0.5
            self.try_bad(flow_token, code if again else self.app.wrong_code(), tag)
            return
        self.tried_step = step
        answer = self.change(
            Action.USER_MFA_CHALLENGE_SUCCESS, *_verification(flow_token, code), tag=tag
        )
        if answer.status == 200:
            self.accepted_step = step
            self.try_bad(flow_token, code, tag)
        elif answer.status < 500:
            # The current code may only be refused while the service's clock is wrong.
            was_right = right_since is not None and right_since == self.bed.clock_is_right_since
            self.check(not was_right, f"a right code was refused: {answer}")

    def try_bad(self, flow_token: str, code: str, tag: str) -> None:
        """Try a code or a login that is not valid, or no longer."""
        answer = self.call(*_verification(flow_token, code), tag=tag)
        self.check(answer.status >= 400, f"a bad code or login was accepted: {answer}")
        self.stopped.wait(0.1)


def _verification(flow_token: str, code: str) -> tuple[str, str, dict[str, str]]:
    body = {"flow_token": flow_token, "method": "totp", "code": code}
    return "POST", "/auth/mfa/challenge/verify", body


class Registrar(Actor):
    """Registers accounts; retries those of unknown outcome, and sometimes repeats others."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, "registrar")
        self.made: set[str] = set()
        self.unclear: set[str] = set()

    def step(self) -> None:
        """Register one account."""
        name = f"new{self.steps}"
        body = {"username": name, "email": f"{name}@example.com", "password": "a password of it"}
        for attempt in range(3):
            answer = self.change(Action.USER_REGISTER, "POST", "/auth/register", body)
            if answer.status == 201:
                self.check(name not in self.made, f"{name} was registered twice")
                self.made.add(name)
            elif answer.status >= 500:
                self.unclear.add(name)
            else:
                known = name in self.made or name in self.unclear
                self.check(known and answer.code in TAKEN, f"{name} was refused: {answer}")
            if answer.status < 500 and (attempt or self.dice.random() < 0.8):
                break
        self.stopped.wait(0.1)  # otherwise an hour's accounts would fill PostgreSQL's disk

    def compare(self) -> None:
        """Compare with the database; an account pending activation has one token and one mail."""
        columns = User.id, User.username, User.email, User.activated_at
        ours = sa.select(*columns).where(User.username.startswith("new"))
        recorded = sa.select(AuditEntry.user_id).where(AuditEntry.action == Action.USER_REGISTER)
        with self.bed.rt.reading() as session:
            rows = session.execute(ours).all()
            entries = Counter(session.execute(recorded).scalars())
            tokens = Counter(session.execute(sa.select(ContactToken.user_id)).scalars())
            mails = Counter(session.execute(sa.select(OutboxMail.recipient)).scalars())
        there = {row.username for row in rows}
        self.check(self.made <= there, f"lost: {self.made - there}")
        self.check(there <= self.made | self.unclear, "an account was made and not answered")
        for row in rows:
            due = row.activated_at is None
            has = entries[row.id], tokens[row.id], mails[row.email]
            self.check(has == (1, due, due), f"entries, tokens, mails of {row.username}: {has}")


class AvatarUser(AccountHolder):
    """Uploads avatars and looks at them through the proxy, which sends the files itself."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        # The colours that may be shown; None stands for no picture.
        self.shows: set[Any] = {None}

    def step(self) -> None:
        """Upload a picture, or look at it."""
        if not self.is_signed_in:
            self.sign_in()
        elif self.dice.random() < 0.3:
            self.upload(self.dice.choice(COLOURS))
        else:
            self.look()
        self.stopped.wait(0.05)

    def upload(self, colour: Any) -> None:
        path, body = "/auth/profile/avatar/upload", images.multipart(images.plain(colour))
        kind = images.headers()["Content-Type"]
        answer = self.change(Action.USER_UPLOAD_AVATAR, "POST", path, body, Content_Type=kind)
        if answer.status == 200:
            self.check(answer.data["applied"], "an upload without a rival was not applied")
            self.shows = {colour}
        elif answer.status in {503, 599}:  # after a disk failure (500) the old one still is there
            self.shows.add(colour)
        elif answer.status < 500:
            self.leave(answer)

    def look(self) -> None:
        answer = self.call("GET", "/auth/profile/avatar/512")
        if answer.status == 200:
            with Image.open(io.BytesIO(answer.body), formats=["WEBP"]) as image:
                seen: Any = image.convert("RGB").getpixel((256, 256))
            near = {c for c in self.shows if c is not None and images.is_near(seen, c)}
        elif answer.status == 404:
            seen, near = None, self.shows & {None}
        else:
            if answer.status < 500:
                self.leave(answer)
            return
        self.check(bool(near), f"shows {seen} instead of {self.shows}")
        self.shows = near or {seen}


class Administrator(AccountHolder):
    """Creates, changes and deletes accounts over HTTP, and reads the console's lists."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, role="admin")
        # The account being administered, and the quotas that may be in force.
        self.made: int | None = None
        self.quotas: set[int] = set()

    def step(self) -> None:
        """Do one thing, chosen at random."""
        if not self.is_signed_in:
            self.sign_in()
        elif self.made is None:
            self.create()
        else:
            self.dice.choice([self.read, self.read, self.set_quota, self.look, self.delete])()
        self.stopped.wait(0.05)

    def create(self) -> None:
        name = f"made{self.steps}by{self.user.id}"
        body = {"username": name, "email": f"{name}@example.com", "password": "a password of it"}
        answer = self.change(Action.ADMIN_CREATE_USER, "POST", "/admin/users", body)
        if self.went_well(answer):
            self.made = answer.data["user"]["id"]
            self.quotas = {answer.data["user"]["storage_quota"]}

    def set_quota(self) -> None:
        quota = self.steps + 1
        path, body = f"/admin/users/{self.made}", {"storage_quota": quota}
        answer = self.change(Action.ADMIN_UPDATE_USER, "PATCH", path, body)
        if answer.status >= 500:
            self.quotas.add(quota)
        elif self.went_well(answer):
            self.quotas = {quota}

    def look(self) -> None:
        answer = self.call("GET", f"/admin/users/{self.made}")
        if self.went_well(answer):
            quota = answer.data["storage_quota"]
            self.check(quota in self.quotas, f"a quota of {quota} instead of {self.quotas}")

    def delete(self) -> None:
        path = f"/admin/users/{self.made}"
        answer = self.change(Action.ADMIN_FORCE_DELETE_USER, "DELETE", path)
        if answer.status >= 500:
            self.made = None  # it may be gone, and may be going
        elif self.went_well(answer):
            gone = self.call("GET", path)
            is_gone = gone.status == 404 or gone.code == EXPIRED or gone.status >= 500
            self.check(is_gone, f"was deleted: {gone}")
            self.made = None

    def read(self) -> None:
        self.went_well(self.call("GET", self.dice.choice(LISTS)))

    def went_well(self, answer: Answer) -> bool:
        if 400 <= answer.status < 500:
            self.leave(answer)
        return answer.status < 400


class Visitor(Actor):
    """Opens pages and their files through the proxy, as a browser does."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, "visitor")
        self.client = PageClient(bed.proxy)  # type: ignore[assignment]

    def step(self) -> None:
        """Open a page and one of its files; ask again for what has not changed."""
        path = self.dice.choice(DOCUMENTS)
        page = self.call("GET", path)
        if page.status < 500:
            self.check(page.status == 200, f"has no page: {page}")
            files = FILES.findall(page.text)
            self.check(bool(files), f"has no files: {page}")
            file = self.call("GET", self.dice.choice(files))
            self.check(file.status == 200 or file.status >= 500, f"has no file: {file}")
            again = self.call("GET", path, If_None_Match=page.headers["ETag"])
            self.check(again.status == 304 or again.status >= 500, f"is unchanged: {again}")
        self.stopped.wait(0.1)


class PageClient:
    """One connection to the proxy, for addresses outside the API."""

    def __init__(self, front: Front) -> None:
        self._connection = Connection(front)
        self.close = self._connection.close

    def call(self, method: str, path: str, _body: None, *, headers: dict[str, str]) -> Answer:
        self._connection.request(method, path, headers=headers)
        response = self._connection.getresponse()
        answered = Headers(response.getheaders())
        return Answer(method, path, response.status, answered, response.read())


class Publisher(Actor):
    """Publishes numbered events as the file service does."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, "publisher")
        self.number = 0
        # Events of which the outcome is unknown; `progress` is the last that Redis acknowledged.
        self.unclear: set[int] = set()
        self._redis = Redis.from_url(bed.valkey.url, socket_timeout=0.5)

    def step(self) -> None:
        """Publish the next number."""
        self.number += 1
        now = self.bed.rt.clock.now()
        event = StorageEvent(Kind.FILE_CREATED, {"kind": "personal"}, now, file_ids=(self.number,))
        try:
            self._redis.publish(EVENTS_CHANNEL, Message(Audience(), event).text())
            self.progress = self.number
        except RedisError:
            self.unclear.add(self.number)
        self.stopped.wait(0.05)

    def close(self) -> None:
        super().close()
        self._redis.close()


class Listener(AccountHolder):
    """Keeps a stream open; must not miss an event without being told to synchronise.

    Published events, and gaps, must reach it within `patience` seconds, which is longer than any
    fault. An open stream alone is no progress: only events are.
    """

    def __init__(self, bed: Bed, ledger: Ledger, publisher: Publisher, patience: float) -> None:
        super().__init__(bed, ledger)
        self._publisher, self._patience = publisher, patience
        self._stream: OpenStream | None = None
        # The last event seen; None when any number of events may have been missed.
        self.last: int | None = None
        # The deadline for being told of a gap; None while there is none.
        self._sync_by: float | None = None
        self.events = 0
        # The newest event heard; a published one to wait for, and the deadline for hearing it.
        self._heard = self._awaited = 0
        self._hear_by = 0.0

    def step(self) -> None:
        """Read for a moment, or reopen the stream."""
        if self._stream is None:
            self.open()
        else:
            self.read(self._stream)
        self.progress = self.events
        self.check_in_time()

    def read(self, stream: OpenStream) -> None:
        """Take the events that arrive within a moment."""
        try:
            for event in stream.events_for(0.3):
                self.take(event)
        except OSError:
            stream.has_ended = True
        if stream.has_ended:
            stream.close()
            self._stream, self.last, self._sync_by = None, None, None

    def take(self, event: dict[str, Any]) -> None:
        """Check that events missed since the last one are, or soon will be, reported as a gap."""
        if event["kind"] == "sync.required":
            self.last = self._sync_by = None
            return
        [number] = event["file_ids"]
        self.events += 1
        self._heard = max(self._heard, number)
        if self.last is not None:
            missed = set(range(self.last + 1, number)) - self._publisher.unclear
            self.check(self.last < number, f"heard {number} after {self.last}")
            if missed and self._sync_by is None:
                self._sync_by = time.monotonic() + self._patience
        self.last = number

    def check_in_time(self) -> None:
        """Complain if a gap was not reported in time, or nothing is heard any more."""
        now = time.monotonic()
        if self._sync_by is not None and now > self._sync_by:
            self.check(holds=False, what=f"was not told of the gap before {self.last}")
            self._sync_by = None
        if self._heard >= self._awaited:
            self._awaited, self._hear_by = self._publisher.progress, now + self._patience
        elif now > self._hear_by:
            self.check(holds=False, what=f"has not heard {self._awaited}, nor anything since")
            self._hear_by = now + self._patience

    def open(self) -> None:
        """Sign in if necessary, and open the stream."""
        answer = self.call("GET", "/auth/me") if self.is_signed_in else self.sign_in()
        if answer.status == 200:
            stream = OpenStream(self.client)
            if stream.status == 200:
                self._stream = stream
                return
            stream.close()
            self.check(stream.status in {204, 503}, f"no stream: {stream.status}")
        elif answer.status < 500 and self.is_signed_in:
            self.leave(answer)
        self.stopped.wait(0.3)

    def close(self) -> None:
        super().close()
        if self._stream is not None:
            self._stream.close()


def create_actors(bed: Bed, ledger: Ledger, hold: float) -> list[Actor]:
    """Return the actors of a run, with accounts of their own; no fault lasts longer than `hold`."""
    make_user(bed.rt, username="root", role="admin")
    # So that a registration also writes a token and a mail.
    configure(bed.rt, auth_register_activation_enabled="true")
    publisher = Publisher(bed, ledger)
    return [
        *(RegularUser(bed, ledger) for _ in range(4)),
        *(kind(bed, ledger) for kind in (MfaUser, Registrar, AvatarUser, Visitor)),
        *(Administrator(bed, ledger) for _ in range(2)),
        publisher,
        *(Listener(bed, ledger, publisher, hold + LATE_SECONDS) for _ in range(2)),
    ]
