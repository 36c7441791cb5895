"""Programs with access tokens, and the owner who makes and ends them."""

from dataclasses import dataclass
from typing import Any

from app.audit.models import Action
from deploy.bed.actors.actor import AccountHolder
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer
from tests.support.programs import PATH

SCOPES = ("profile:read", "profile", "events", "files:read", "files", "admin:read", "admin")
MOST_LIVE = 6
# Ended tokens, to be tried again.
MOST_ENDED = 30


@dataclass(frozen=True)
class Token:
    """An access token, as its owner was told of it."""

    id: int
    text: str
    scopes: frozenset[str]


@dataclass(frozen=True)
class Deed:
    """What a program may do with one of these scopes; `action` is what is audited of it."""

    method: str
    path: str
    opened_by: frozenset[str]
    action: Action | None = None


ANY, NONE = frozenset(SCOPES), frozenset[str]()
DEEDS = (
    Deed("GET", "/auth/me", ANY),
    Deed("GET", "/teams", frozenset({"profile:read", "profile"})),
    Deed("PATCH", "/auth/profile", frozenset({"profile"}), Action.USER_UPDATE_PROFILE),
    Deed("GET", "/admin/users?keyword=made", frozenset({"admin:read", "admin"})),
    Deed("GET", "/auth/sessions", NONE),
    Deed("DELETE", "/auth/sessions/others", NONE),
    Deed("POST", PATH, NONE),
    Deed("PATCH", "/admin/users/{owner}", NONE),
)


class Program(AccountHolder):
    """An administrator with access tokens, and the programs that have them."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger, role="admin")
        self.live: dict[int, Token] = {}
        # Those of which it is unknown whether they have ended.
        self.unclear: dict[int, Token] = {}
        self.ended: list[Token] = []
        # How many were made, perhaps, without an answer.
        self.unanswered = 0

    def step(self) -> None:
        """Do one thing, chosen at random."""
        if not self.is_signed_in:
            self.sign_in()
        elif not self.live:
            self.make()
        else:
            owner = [self.rotate, self.rename, self.tidy, self.confirm]
            self.dice.choice([self.use] * 8 + [self.use_ended] * 4 + owner)()
        self.stopped.wait(0.05)

    # --- programs --------------------------------------------------------------------------------

    def use(self) -> None:
        """Do something with a token; what its scopes do not open is never done."""
        token, deed = self.dice.choice([*self.live.values()]), self.dice.choice(DEEDS)
        is_open = bool(token.scopes & deed.opened_by)
        answer = self.call_as(token, deed, is_open=is_open)
        holds = answer.status < 400 if is_open else answer.status == 403
        about = f"{sorted(token.scopes)}: {answer}"
        self.check(holds or answer.status >= 500, f"a token, {about}")

    def use_ended(self) -> None:
        """Try a token that has ended, or may have."""
        for token in [*self.unclear.values()]:
            if self.call_as(token, DEEDS[0]).status == 401:
                self.has_ended(token)
        if self.ended:
            self.check_ended(self.dice.choice(self.ended))

    def check_ended(self, token: Token) -> None:
        """Complain if an ended token is still accepted."""
        answer = self.call_as(token, DEEDS[0])
        is_refused = answer.code == "auth.token_invalid" or answer.status >= 500
        self.check(is_refused, f"an ended token: {answer}")

    def call_as(self, token: Token, deed: Deed, *, is_open: bool = True) -> Answer:
        """Send a request of a program, which has no cookies."""
        kept, self.client.cookies = self.client.cookies, {}
        path, bearer = deed.path.format(owner=self.user.id), f"Bearer {token.text}"
        body = self._body_of(deed)
        try:
            if deed.action and is_open:
                return self.change(deed.action, deed.method, path, body, Authorization=bearer)
            return self.call(deed.method, path, body, Authorization=bearer)
        finally:
            self.client.cookies = kept

    def _body_of(self, deed: Deed) -> Any:
        if deed.method == "POST":
            return self._new("by a program", ["profile"])
        return {"display_name": f"program {self.steps}"} if deed.method == "PATCH" else None

    # --- their owner -----------------------------------------------------------------------------

    def make(self, scopes: frozenset[str] | None = None) -> Token | None:
        """Make a token, with scopes chosen at random unless they are given."""
        wanted = scopes or frozenset(self.dice.sample(SCOPES, self.dice.randint(1, 3)))
        body = self._new(f"program {self.steps}", sorted(wanted))
        answer = self.change(Action.USER_TOKEN_CREATE, "POST", PATH, body)
        if answer.status >= 500:
            self.unanswered += 1
        elif answer.code == "precondition_failed":
            self.confirm()
        elif self.went_well(answer):
            token = Token(answer.data["info"]["id"], answer.data["token"], wanted)
            self.live[token.id] = token
            return token
        return None

    def rotate(self) -> None:
        """Replace a token by a new one with the same scopes, or make one more."""
        old = self.dice.choice([*self.live.values()])
        has_new = self.make(old.scopes if len(self.live) >= MOST_LIVE else None)
        if has_new and len(self.live) > MOST_LIVE:
            self.end(old.id)

    def end(self, token_id: int) -> None:
        """Remove a token, which opens nothing from then on."""
        answer = self.change(Action.USER_TOKEN_DELETE, "DELETE", f"{PATH}/{token_id}")
        token = self.live.get(token_id) or self.unclear.get(token_id)
        if token is None:
            return  # one whose making was not answered
        if answer.status >= 500:
            self.live.pop(token_id, None)
            self.unclear[token_id] = token
        elif answer.status == 404 and token_id in self.unclear:
            self.has_ended(token)
        elif self.went_well(answer):
            self.has_ended(token)
            self.check_ended(token)

    def has_ended(self, token: Token) -> None:
        """Remember that a token is over for good."""
        self.live.pop(token.id, None)
        self.unclear.pop(token.id, None)
        self.ended = [*self.ended[1 - MOST_ENDED :], token]

    def rename(self) -> None:
        token_id = self.dice.choice([*self.live])
        path, body = f"{PATH}/{token_id}", {"name": f"renamed {self.steps}"}
        self.went_well(self.change(Action.USER_TOKEN_RENAME, "PATCH", path, body))

    def tidy(self) -> None:
        """Compare the list of tokens with what is known, and end what is left over."""
        answer = self.call("GET", PATH)
        if not self.went_well(answer):
            return
        listed = {token["id"] for token in answer.data}
        self.check(listed >= self.live.keys(), f"lost: {self.live.keys() - listed}")
        back = listed & {token.id for token in self.ended}
        self.check(not back, f"ended, and listed: {back}")
        unknown = listed - self.live.keys() - self.unclear.keys() - back
        self.check(len(unknown) <= self.unanswered, f"never made: {unknown}")
        for token_id in [*unknown, *self.unclear]:
            self.end(token_id)

    def confirm(self) -> None:
        """Confirm to be the owner, as the making of a token demands after a while."""
        body = {"method": "password", "password": self.user.password}
        answer = self.change(Action.USER_CONFIRM_IDENTITY, "POST", "/auth/confirmation", body)
        self.went_well(answer)

    @staticmethod
    def _new(name: str, scopes: list[str]) -> dict[str, Any]:
        return {"name": name, "scopes": scopes, "expires_in_days": 30}
