"""An everyday user of an account."""

from app.audit.models import Action
from deploy.bed.actors.actor import EXPIRED, WRONG_PASSWORD, AccountHolder
from deploy.bed.bed import Bed
from deploy.bed.ledger import ALARM, Ledger
from tests.support.api import Answer
from tests.support.factories import KnownUser

REUSED = "auth.refresh_token_reuse_detected"
# The answers to a refresh token that is spent, or whose session was revoked for its reuse.
SIGNED_OUT_CODES = {REUSED, "auth.refresh_token_stale", "auth.token_invalid"}


class RegularUser(AccountHolder):
    """Signs in, reads and changes an account of its own, refreshes, signs out."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser) -> None:
        super().__init__(bed, ledger, user)
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
            self.check(name in self.names, f"is called {name!r} instead of {self.names}")
            self.names = {name}

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
            self.passwords = {new}
            self.may_be_signed_out = False
            self.check_ended(before)
            self.check_wrong(old)

    def refresh(self) -> None:
        tag = self.new_tag()
        answer = self.call("POST", "/auth/refresh", tag=tag)
        is_clear = answer.status < 500
        if not is_clear or answer.code == REUSED:
            self.record_change(tag, ALARM, is_certain=is_clear)
        if not is_clear:
            self.may_be_signed_out = True
        elif self.went_well(answer):
            self.may_be_signed_out = False

    def list_sessions(self) -> None:
        answer = self.call("GET", "/auth/sessions")
        # The current session is recognised by its refresh token.
        if self.went_well(answer) and not self.may_be_signed_out:
            current = [session for session in answer.data if session["is_current"]]
            self.check(len(current) == 1, f"{len(current)} sessions are the current one")

    def sign_out(self) -> None:
        tag, before = self.new_tag(), dict(self.client.cookies)
        answer = self.call("POST", "/auth/logout", tag=tag)
        if answer.status < 400 or answer.status >= 500:
            # Nothing is left to end if a reuse alarm has already revoked the session.
            is_certain = answer.status < 400 and not self.may_be_signed_out
            self.record_change(tag, Action.USER_LOGOUT, is_certain=is_certain)
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
        if answer.status < 400:
            return True
        if answer.status >= 500:
            return False
        if answer.code == EXPIRED and not answer.path.endswith("/refresh"):
            self.refresh()
            return False
        is_explained = self.may_be_signed_out and answer.code in SIGNED_OUT_CODES
        self.check(is_explained, f"is out without a reason: {answer}")
        self.forget()
        return False
