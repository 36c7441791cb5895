"""One answer to what a waiting login asks, and what the audit log tells of it."""

from dataclasses import dataclass
from typing import Any

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.runtime import Runtime
from app.login.waiting import WaitingLogin
from app.mfa.models import MfaMethod
from app.users.models import Account


@dataclass(frozen=True)
class Answer:
    """Who answers which login by which method."""

    rt: Runtime
    waiting: WaitingLogin
    account: Account
    method: MfaMethod
    client: Client

    def event(self, action: Action, *, entity_id: int | None = None, **details: Any) -> Event:
        """Return what the audit log tells of it."""
        return Event(
            action,
            EntityType.MFA_FACTOR,
            self.client,
            user_id=self.account.id,
            entity_id=entity_id,
            entity_name=self.method,
            details={"method": self.method, "flow_id": self.waiting.flow_id, **details},
        )

    def record(self, action: Action, **details: Any) -> None:
        """Record something by itself."""
        with self.rt.transaction() as session:
            audit.record(self.rt, session, self.event(action, **details))
