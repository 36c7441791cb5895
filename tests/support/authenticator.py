"""A user's second factors: an authenticator app and a list of recovery codes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyotp

from app.core.clock import Clock
from tests.support.api import ApiClient
from tests.support.clock import FakeClock

STEP_SECONDS = 30


@dataclass(frozen=True)
class Authenticator:
    """An authenticator app set up with one secret."""

    secret: str
    clock: Clock

    def code(self, steps: int = 0) -> str:
        """Return the current code, or the one `steps` time steps of 30 s from now."""
        return self.at(self.clock.now() + timedelta(seconds=steps * STEP_SECONDS))

    def at(self, moment: datetime) -> str:
        """Return the code that is valid at `moment`."""
        return pyotp.TOTP(self.secret).at(moment)

    def wrong_code(self) -> str:
        """Return six digits that are not a valid code at any time near now."""
        near = {self.code(steps) for steps in range(-3, 4)}
        return next(code for n in range(10) if (code := f"{n:06d}") not in near)

    def wait(self) -> str:
        """Advance to the next time step; return its code."""
        assert isinstance(self.clock, FakeClock)
        self.clock.advance(seconds=STEP_SECONDS)
        return self.code()


@dataclass(frozen=True)
class EnabledTotp:
    """An account's enabled factor, and the recovery codes its owner wrote down."""

    factor_id: int
    app: Authenticator
    recovery_codes: list[str] = field(repr=False)


def start_setup(client: ApiClient, clock: FakeClock) -> tuple[str, Authenticator]:
    """Start a setup; return its token and the app that scanned the secret."""
    data = client.post("/auth/mfa/totp/setup/start").ok()
    return data["flow_token"], Authenticator(data["secret"], clock)


def finish_setup(client: ApiClient, flow_token: str, code: str, **body: Any) -> Any:
    """Finish a setup with a code."""
    return client.post(
        "/auth/mfa/totp/setup/finish", {"flow_token": flow_token, "code": code} | body
    )


def enable_totp(client: ApiClient, clock: FakeClock, **body: Any) -> EnabledTotp:
    """Enable TOTP for the account a client is signed in to."""
    flow_token, app = start_setup(client, clock)
    data = finish_setup(client, flow_token, app.code(), **body).ok()
    return EnabledTotp(data["factor"]["id"], app, data["recovery_codes"])
