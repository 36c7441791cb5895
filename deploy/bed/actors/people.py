"""People with accounts of their own: what they change, and what they see of it."""

import io
from collections import Counter
from typing import Any

import sqlalchemy as sa
from PIL import Image

from app.audit.models import Action, AuditEntry
from app.contact_verification.models import ContactToken
from app.mail.models import OutboxMail
from app.users.models import User
from deploy.bed.actors.actor import EXPIRED, WRONG_PASSWORD, AccountHolder, Actor
from deploy.bed.bed import Bed
from deploy.bed.ledger import ALARM, Ledger
from tests.support import images
from tests.support.api import Answer

REUSED = "auth.refresh_token_reuse_detected"
# The answers to a refresh token that is spent, or whose session was revoked for its reuse.
SIGNED_OUT = {REUSED, "auth.refresh_token_stale", "auth.token_invalid"}
TAKEN = {"auth.username_exists", "auth.email_exists", "auth.identifier_exists"}
LISTS = ("/admin/users?keyword=made", "/admin/overview", "/admin/audit-logs", "/admin/config")
COLOURS = (images.RED, images.GREEN, images.BLUE, images.YELLOW)


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
