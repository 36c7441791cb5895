"""A client that registers accounts."""

from collections import Counter

import sqlalchemy as sa

from app.audit.models import Action, AuditEntry
from app.contact_verification.models import ContactToken
from app.mail.models import OutboxMail
from app.users.models import User
from deploy.bed.actors.actor import Actor
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer

TAKEN = {"auth.username_exists", "auth.email_exists", "auth.identifier_exists"}


class Registrar(Actor):
    """Registers accounts; retries those of unknown outcome, and sometimes repeats others."""

    def __init__(self, bed: Bed, ledger: Ledger, number: int) -> None:
        super().__init__(bed, ledger, f"registrar {number}")
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
                self.check(known and answer.code in TAKEN, f"{name} was refused: {answer}")
            if answer.status < 500 and (attempt or self.dice.random() < 0.8):
                break
        self.stopped.wait(0.1)  # otherwise an hour's accounts would fill PostgreSQL's disk

    def register(self, name: str) -> Answer:
        """Send the registration."""
        body = {"username": name, "email": f"{name}@example.com", "password": "a password of it"}
        tag = self.new_tag()
        answer = self.call("POST", "/auth/register", body, tag=tag)
        if answer.status < 400 or answer.status >= 500:
            self.ledger.record_change(tag, Action.USER_REGISTER, is_certain=answer.status < 400)
        return answer

    def compare(self) -> None:
        """Compare with the database; an account pending activation has one token and one mail."""
        columns = User.id, User.username, User.email, User.activated_at
        ours = sa.select(*columns).where(User.username.startswith(self._prefix))
        recorded = sa.select(AuditEntry.user_id).where(AuditEntry.action == Action.USER_REGISTER)
        with self.bed.rt.reading() as connection:
            rows = connection.execute(ours).all()
            entries = Counter(connection.execute(recorded).scalars())
            tokens = Counter(connection.execute(sa.select(ContactToken.user_id)).scalars())
            mails = Counter(connection.execute(sa.select(OutboxMail.recipient)).scalars())
        there = {row.username for row in rows}
        self.check(self.made <= there, f"lost: {self.made - there}")
        self.check(there <= self.made | self.unclear, "an account was made and not answered")
        for row in rows:
            due = row.activated_at is None
            has = entries[row.id], tokens[row.id], mails[row.email]
            self.check(has == (1, due, due), f"entries, tokens, mails of {row.username}: {has}")
