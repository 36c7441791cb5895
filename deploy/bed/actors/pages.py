"""People in browsers: what the built-in pages ask for, and the pages themselves."""

import re
from typing import Any

from werkzeug.datastructures import Headers

from deploy.bed.actors.actor import Actor
from deploy.bed.actors.people import RegularUser
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer
from tests.support.live import Connection, Front

DOCUMENTS = (
    *("/login", "/register", "/reset-password"),
    *("/settings/profile", "/settings/security", "/settings/tokens", "/settings/data"),
    *("/admin/overview", "/admin/users", "/admin/settings/site", "/admin/audit"),
)
FILES = re.compile(r'(?:href|src)="(/pages/[^"]+)"')
# What the pages of an account ask for, beside whose session it is.
READS = (
    ("/teams",),
    ("/auth/confirmation", "/auth/passkeys", "/auth/mfa", "/auth/mfa/devices"),
    ("/auth/sessions",),
    ("/auth/tokens",),
    ("/auth/external-auth/links", "/auth/external-auth/providers"),
    ("/auth/activity",),
)


class PageUser(RegularUser):
    """Does by the built-in pages what a regular user does; their requests say where they are from.

    Documents and files are the visitor's: they are the same for everybody.
    """

    def call(
        self, method: str, path: str, body: Any = None, *, tag: str | None = None, **headers: str
    ) -> Answer:
        origin = f"https://127.0.0.1:{self.bed.proxy.port}"
        headers |= {"Origin": origin, "Sec_Fetch_Site": "same-origin"}
        if token := self.client.cookies.get("service_csrf"):
            headers |= {"X_CSRF_Token": token, "X_Session_User": str(self.user.id)}
        return super().call(method, path, body, tag=tag, **headers)

    def look(self) -> None:
        """Open a page: it asks who is signed in, and then for what it shows."""
        super().look()
        for path in self.dice.choice(READS):
            if not self.is_signed_in:
                return
            self.went_well(self.call("GET", path))


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
