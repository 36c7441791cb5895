"""The clients of a run: each does what a kind of user does, and knows what must be true then."""

import http.client
import io
import random
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from PIL import Image
from redis import Redis
from redis.exceptions import RedisError
from werkzeug.datastructures import Headers

from app.core.redis import EVENTS_CHANNEL
from app.events.messages import Audience, Kind, Message, StorageEvent
from app.users.models import User
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support import images
from tests.support.api import Answer
from tests.support.authenticator import Enabled
from tests.support.challenge import give_totp
from tests.support.factories import KnownUser, make_user
from tests.support.streams import OpenStream

PACE_SECONDS = 0.02
EXPIRED = "auth.token_expired"
ALARM = "user_refresh_token_reuse_detected"
# What a client makes of an answer that breaks off: it knows as little as after a 503.
CUT_OFF = Answer("any", "request", 599, Headers(), b'{"code": "cut off"}')
# After a gap every stream is told to load everything anew; a busy machine takes its time.
SYNC_SECONDS = 15.0


class Actor(threading.Thread):
    """One client with one connection through the proxy; `step` is what it does again and again."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(daemon=True, name=type(self).__name__)
        self.bed, self.ledger = bed, ledger
        self.stopped = threading.Event()
        self.dice = random.Random(f"{self.name}")
        self.client = bed.client()
        self.steps = 0

    def run(self) -> None:
        """Act until stopped; whatever goes wrong is a broken invariant."""
        while not self.stopped.wait(PACE_SECONDS):
            try:
                self.step()
                self.steps += 1
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.ledger.complain(
                    f"{self.name}: {type(error).__name__} {str(error)[:300]}"
                    f" ({where.name}:{where.lineno})"
                )
                self.client.close()
                self.stopped.wait(0.5)
        self.close()

    def step(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the connection."""
        self.client.close()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request; its answer, whose form is checked, goes to the ledger."""
        return self.noted(lambda: self.client.call(method, path, body, **options))

    def noted(self, send: Callable[[], Answer]) -> Answer:
        """Return the answer to what `send` sends, and note it."""
        began = time.monotonic()
        try:
            answer = send()
        except (http.client.BadStatusLine, ConnectionError):
            # nginx may have closed an idle connection, as every client must expect.
            self.client.close()
            answer = send()
        except http.client.IncompleteRead:
            self.client.close()
            answer = CUT_OFF
        self.ledger.note(began, answer)
        return answer

    def check(self, holds: bool, what: str) -> None:
        """Complain about what does not hold."""
        if not holds:
            self.ledger.complain(f"{self.name}: {what}")


class Member(Actor):
    """Signs in, reads and changes an account of its own, refreshes, signs out."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser) -> None:
        super().__init__(bed, ledger)
        self.user = user
        self.name = f"member {user.username}"
        # What the account may have: more than one value after an answer that told nothing.
        self.names: set[str | None] = {None}
        self.passwords = {user.password}
        self.is_in = False
        # A refresh without a clear answer may have used the token up; then it counts as stolen.
        self.may_be_out = False

    def step(self) -> None:
        """Do one thing that a member does."""
        if not self.is_in:
            return self.sign_in()
        deeds = [self.look] * 6 + [self.refresh] * 3 + [self.rename] * 3 + [self.list_sessions]
        self.dice.choice([*deeds, self.change_password, self.sign_out])()
        return None

    def sign_in(self) -> None:
        for password in sorted(self.passwords):
            body = {"identifier": self.user.username, "password": password}
            answer = self.call("POST", "/auth/login", body)
            if answer.status != 401:
                self.ledger.did(self.user.id, "user_login", answer.status)
            if answer.status == 200:
                self.passwords = {password}
                self.is_in, self.may_be_out = True, False
            if answer.status != 401:
                return
        self.check(holds=False, what=f"none of {len(self.passwords)} passwords is right")

    def look(self) -> None:
        answer = self.call("GET", "/auth/me")
        if self.went_well(answer):
            name = answer.data["profile"]["display_name"]
            self.check(name in self.names, f"is called {name!r} instead of {self.names}")
            self.names = {name}

    def rename(self) -> None:
        new = f"{self.user.username} {self.steps}"
        answer = self.call("PATCH", "/auth/profile", {"display_name": new})
        self.ledger.did(self.user.id, "user_update_profile", answer.status)
        if answer.status >= 500:
            self.names.add(new)
        elif self.went_well(answer):
            self.names = {new}

    def change_password(self) -> None:
        [old] = self.passwords
        new = f"password number {self.steps}"
        body = {"current_password": old, "new_password": new}
        answer = self.call("PUT", "/auth/password", body)
        self.ledger.did(self.user.id, "user_change_password", answer.status)
        if answer.status >= 500:
            # It may have ended every session, this one included.
            self.passwords = {old, new}
            self.forget()
        elif self.went_well(answer):
            self.passwords = {new}

    def refresh(self) -> None:
        answer = self.call("POST", "/auth/refresh")
        if answer.status >= 500:
            self.may_be_out = True
            self.ledger.did(self.user.id, ALARM, answer.status)
        else:
            self.went_well(answer)

    def list_sessions(self) -> None:
        answer = self.call("GET", "/auth/sessions")
        # The current one is known by its refresh token.
        if self.went_well(answer) and not self.may_be_out:
            current = [session for session in answer.data if session["is_current"]]
            self.check(len(current) == 1, f"{len(current)} sessions are the current one")

    def sign_out(self) -> None:
        answer = self.call("POST", "/auth/logout")
        self.ledger.did(self.user.id, "user_logout", answer.status)
        if answer.status >= 500:
            self.forget()
        elif self.went_well(answer):
            self.is_in = False
            self.client.cookies = {}

    def forget(self) -> None:
        """Leave, without knowing whether the session has ended."""
        self.is_in = False
        self.client.cookies = {}

    def went_well(self, answer: Answer) -> bool:
        """Tell whether it did; a session is lost only if that may be."""
        if answer.status < 400:
            return True
        if answer.status >= 500:
            return False
        if answer.code == EXPIRED and "/refresh" not in answer.path:
            self.refresh()
            return False
        self.check(self.may_be_out, f"is out without a reason: {answer}")
        self.forget()
        return False


class Careful(Actor):
    """Signs in with a second factor; tries wrong codes, and right ones again."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser, enabled: Enabled) -> None:
        super().__init__(bed, ledger)
        self.user, self.enabled = user, enabled
        self.name = f"careful {user.username}"
        # Tried, and of those the ones that were good.
        self._spent: set[str] = set()
        self._good: set[str] = set()

    def step(self) -> None:
        """Sign in with a code of the app, while it has an unused one; else with a bad one."""
        body = {"identifier": self.user.username, "password": self.user.password}
        answer = self.call("POST", "/auth/login", body)
        self.ledger.did(self.user.id, "user_login", answer.status)
        if answer.status != 200:
            self.check(answer.status >= 500, f"the first step: {answer}")
            return
        self.check(answer.data["status"] == "mfa_required", f"no second factor: {answer}")
        flow_token, code = answer.data["flow_token"], self.enabled.app.code()
        if code in self._spent:
            again = code in self._good and self.dice.random() < 0.5
            answer = self.verify(flow_token, code if again else self.enabled.app.wrong_code())
            self.check(answer.status >= 400, f"a bad code was accepted: {answer}")
            self.stopped.wait(0.1)
            return
        self._spent.add(code)
        answer = self.verify(flow_token, code)
        self.ledger.did(self.user.id, "user_mfa_challenge_success", answer.status)
        if answer.status == 200:
            self._good.add(code)
            again = self.verify(flow_token, code)
            self.check(again.status >= 400, f"a login was finished twice: {again}")

    def verify(self, flow_token: str, code: str) -> Answer:
        """Do the second step."""
        body = {"flow_token": flow_token, "method": "totp", "code": code}
        return self.call("POST", "/auth/mfa/challenge/verify", body)


class Registrar(Actor):
    """Registers accounts; repeats what had no clear answer, and sometimes what had one."""

    def __init__(self, bed: Bed, ledger: Ledger, number: int) -> None:
        super().__init__(bed, ledger)
        self.name = f"registrar {number}"
        self._prefix = f"new{number}x"
        self.made: set[str] = set()
        self.unclear: set[str] = set()

    def step(self) -> None:
        """Register one account."""
        name = f"{self._prefix}{self.steps}"
        for attempt in range(3):
            answer = self.register(name)
            if answer.status == 201:
                self.check(name not in self.made, f"{name} was registered twice")
                self.made.add(name)
            elif answer.status >= 500:
                self.unclear.add(name)
            else:
                known = name in self.made or name in self.unclear
                self.check(known, f"{name} was refused: {answer}")
            if answer.status < 500 and (attempt or self.dice.random() < 0.8):
                return

    def register(self, name: str) -> Answer:
        """Send the form."""
        body = {"username": name, "email": f"{name}@example.com", "password": "a password of it"}
        return self.call("POST", "/auth/register", body)

    def compare(self) -> None:
        """Compare with the rows."""
        statement = sa.select(User.username).where(User.username.startswith(self._prefix))
        with self.bed.rt.reading() as connection:
            rows = list(connection.execute(statement).scalars())
        self.check(len(rows) == len(set(rows)), "an account is there twice")
        self.check(self.made <= set(rows), f"lost: {self.made - set(rows)}")
        self.check(set(rows) <= self.made | self.unclear, "an account was made and not answered")


class Painter(Actor):
    """Uploads avatars and looks at them through the proxy, which sends the files itself."""

    COLOURS = (images.RED, images.GREEN, images.BLUE, images.YELLOW)

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser) -> None:
        super().__init__(bed, ledger)
        self.user = user
        self.name = f"painter {user.username}"
        self._files = [images.plain(colour) for colour in self.COLOURS]
        self._shows: set[Any] = set()
        self._is_in = False

    def step(self) -> None:
        """Upload, or look."""
        if not self._is_in:
            answer = self.noted(lambda: self.client.login(self.user))
            self._is_in = answer.status == 200
            self.ledger.did(self.user.id, "user_login", answer.status)
            return
        if not self._shows or self.dice.random() < 0.3:
            self.upload(self.dice.choice(self.COLOURS))
        else:
            self.look()
        self.stopped.wait(0.05)

    def upload(self, colour: Any) -> None:
        """Upload a picture of one colour."""
        content = self._files[self.COLOURS.index(colour)]
        answer = self.noted(lambda: images.upload(self.client, content))
        self.ledger.did(self.user.id, "user_upload_avatar", answer.status)
        if answer.status == 200:
            self.check(answer.data["applied"], "an upload without a rival was not applied")
            self._shows = {colour}
        elif answer.status in {503, 599}:
            self._shows.add(colour)
        else:
            self.has_left(answer)

    def look(self) -> None:
        """Look at the picture."""
        answer = self.call("GET", "/auth/profile/avatar/512")
        if answer.status == 200:
            with Image.open(io.BytesIO(answer.body), formats=["WEBP"]) as image:
                seen: Any = image.convert("RGB").getpixel((256, 256))
            near = [colour for colour in self._shows if images.is_near(seen, colour)]
            self.check(bool(near), f"shows {seen} instead of {self._shows}")
            self._shows = set(near)
        else:
            self.has_left(answer)

    def has_left(self, answer: Answer) -> None:
        """Note that the session has expired, as it does when a clock is set forward."""
        if answer.status == 401:
            self._is_in = False
            self.check(answer.code == EXPIRED, f"is out without a reason: {answer}")


class Listener(Actor):
    """Keeps a stream open; misses nothing without being told to look anew."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser, publisher: "Publisher") -> None:
        super().__init__(bed, ledger)
        self.user = user
        self.name = f"listener {user.username}"
        self._publisher = publisher
        self._stream: OpenStream | None = None
        # The last event seen; None when anything may have been missed.
        self.last: int | None = None
        # Until when it must be told of a gap.
        self._sync_by: float | None = None
        self.events = 0

    def step(self) -> None:
        """Read for a moment, or open the stream again."""
        if self._stream is None:
            self.open()
            return
        try:
            events = self._stream.events_for(0.3)
        except OSError:
            events = []
            self._stream.has_ended = True
        for event in events:
            self.take(event)
        if self._stream.has_ended:
            self._stream.close()
            self._stream, self.last, self._sync_by = None, None, None
        if self._sync_by is not None and time.monotonic() > self._sync_by:
            self.check(holds=False, what=f"was not told of the gap before {self.last}")
            self._sync_by = None

    def take(self, event: dict[str, Any]) -> None:
        """Check that nothing is missed between two events without a word, before or after."""
        if event["kind"] == "sync.required":
            self.last = self._sync_by = None
            return
        [number] = event["file_ids"]
        self.events += 1
        if self.last is not None:
            missed = set(range(self.last + 1, number)) - self._publisher.unclear
            self.check(self.last < number, f"heard {number} after {self.last}")
            if missed and self._sync_by is None:
                self._sync_by = time.monotonic() + SYNC_SECONDS
        self.last = number

    def open(self) -> None:
        """Sign in if need be, and open the stream."""
        answer = self.call("GET", "/auth/me") if self.client.cookies else None
        if answer is None or answer.status == 401:
            self.client.cookies = {}
            answer = self.noted(lambda: self.client.login(self.user))
            self.ledger.did(self.user.id, "user_login", answer.status)
        if answer.status == 200:
            stream = OpenStream(self.client)
            if stream.status == 200:
                self._stream = stream
                return
            stream.close()
            self.check(stream.status in {204, 503}, f"no stream: {stream.status}")
        self.stopped.wait(0.3)

    def close(self) -> None:
        """Hang up."""
        super().close()
        if self._stream is not None:
            self._stream.close()


class Publisher(Actor):
    """Publishes numbered events as the file side does."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        self.name = "publisher"
        self.number = 0
        # Those of which Redis did not say that it took them.
        self.unclear: set[int] = set()
        self._redis = Redis.from_url(bed.valkey.url, socket_timeout=0.5)

    def step(self) -> None:
        """Publish the next number."""
        self.number += 1
        now = self.bed.rt.clock.now()
        event = StorageEvent(Kind.FILE_CREATED, {"kind": "personal"}, now, file_ids=(self.number,))
        try:
            self._redis.publish(EVENTS_CHANNEL, Message(Audience(), event).text())
        except RedisError:
            self.unclear.add(self.number)
        self.stopped.wait(0.05)

    def close(self) -> None:
        super().close()
        self._redis.close()


def crowd(bed: Bed, ledger: Ledger) -> list[Actor]:
    """Return the actors of a run, with accounts of their own."""
    rt = bed.rt
    make_user(rt, username="root", role="admin")
    careful, publisher = make_user(rt), Publisher(bed, ledger)
    return [
        *(Member(bed, ledger, make_user(rt)) for _ in range(4)),
        Careful(bed, ledger, careful, give_totp(rt, careful)),
        Registrar(bed, ledger, 1),
        Painter(bed, ledger, make_user(rt)),
        publisher,
        *(Listener(bed, ledger, make_user(rt), publisher) for _ in range(2)),
    ]
