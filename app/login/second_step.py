"""The second step of a login, and its audit entries."""

from dataclasses import dataclass
from typing import Any

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.client import Client
from app.core.runtime import Runtime
from app.login.mfa_login import MfaLogin
from app.mfa.models import MfaMethod
from app.users.models import Account


@dataclass(frozen=True)
class SecondStep:
    """A second factor submitted for a login; `client` may differ from the first step's."""

    login: MfaLogin
    account: Account
    method: MfaMethod
    client: Client

    def event(self, action: Action, *, entity_id: int | None = None, **details: Any) -> Event:
        """Return an audit event about this step."""
        return Event(
            action,
            EntityType.MFA_FACTOR,
            self.client,
            user_id=self.account.id,
            entity_id=entity_id,
            entity_name=self.method,
            details={"method": self.method, "flow_id": self.login.flow_id, **details},
        )


def record(rt: Runtime, step: SecondStep, action: Action, **details: Any) -> None:
    """Record an event about a step in a transaction of its own."""
    audit.record_best_effort(rt, step.event(action, **details))
