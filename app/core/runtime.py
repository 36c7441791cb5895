"""Runtime: everything a use case may touch besides its arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.core.access import Operator
from app.core.clock import Clock
from app.core.config import Config
from app.core.http_client import HttpClient

if TYPE_CHECKING:
    from app.crypto.keyring import Keyring
    from app.crypto.passwords import Passwords
    from app.crypto.secret_box import SecretBox
    from app.mail.mailer import Mailer
    from app.store.database import Database
    from app.store.limits import AttemptLimits, RateLimits
    from app.store.live_settings import LiveSettings
    from app.store.redis import RedisClients

# Called with the runtime, before a transaction; returns the check to run inside it: whether an
# account can sign in by this method as things stand then.
SignInMethod = Callable[["Runtime"], Callable[[Session, int], bool]]


@dataclass(frozen=True)
class Limits:
    """How often something may be tried: requests and mails, and secrets."""

    rates: RateLimits
    attempts: AttemptLimits


@dataclass(frozen=True)
class SignInSwitch:
    """What lets people in and was switched, in words: "Signing in with a passkey", "switched off".

    `name` is the same however often it is switched.
    """

    name: str
    what: str
    did: str


@dataclass(frozen=True)
class Hooks:
    """What areas do for lower layers, which may not import them; filled by the factory.

    `extra_login_methods` say whether anybody, `sign_in_methods` whether an account can sign in,
    `external_confirmations` whether it can confirm a session by another service;
    `on_sign_in_switch` are called in the transaction that switches a way to sign in, with the
    operator and what was switched; `on_setting_change` in the transaction of any change of
    settings, with the runtime as it will be after it and their names; `on_unverified_reset` remove
    what must not survive a reset through an unverified address, `on_unproven_reset` what must not
    survive one through an address whose owner never acted in person. `template_defaults` return
    what is in force instead of an empty text, by the setting's name. `on_start`, each of which
    returns its stop function, and `on_shutdown` are called by the serving process.
    """

    extra_login_methods: list[Callable[[Session], bool]] = field(default_factory=list)
    sign_in_methods: list[SignInMethod] = field(default_factory=list)
    external_confirmations: list[SignInMethod] = field(default_factory=list)
    on_sign_in_switch: list[Callable[[Runtime, Session, Operator, SignInSwitch], None]] = field(
        default_factory=list
    )
    on_setting_change: list[Callable[[Runtime, Session, Collection[str]], None]] = field(
        default_factory=list
    )
    on_unverified_reset: list[Callable[[Session, int], int]] = field(default_factory=list)
    on_unproven_reset: list[Callable[[Session, int], int]] = field(default_factory=list)
    template_defaults: list[Callable[[], Mapping[str, str]]] = field(default_factory=list)
    on_start: list[Callable[[], Callable[[], None]]] = field(default_factory=list)
    on_shutdown: list[Callable[[], None]] = field(default_factory=list)
    stops: list[Callable[[], None]] = field(default_factory=list)


@dataclass(frozen=True)
class Runtime:
    """What one application was built with; passed down as `rt`."""

    config: Config
    clock: Clock
    database: Database
    redis: RedisClients
    settings: LiveSettings
    keyring: Keyring
    secret_box: SecretBox
    passwords: Passwords
    limits: Limits
    mailer: Mailer
    http_client: HttpClient
    hooks: Hooks

    def transaction(self) -> AbstractContextManager[Session]:
        """Open the one transaction of a use case."""
        self.settings.renew()
        return self.database.transaction()

    def reading(self) -> AbstractContextManager[Session]:
        """Open a session for statements that only read."""
        return self.database.reading()

    def start_background(self) -> None:
        """Start the background work of a serving process; called once, after the fork."""
        self.database.forget_inherited_connections()
        self.settings.forget()
        self.hooks.stops.extend(start() for start in self.hooks.on_start)

    def begin_shutdown(self) -> None:
        """End what would last as long as the process; called when its shutdown begins."""
        for end in self.hooks.on_shutdown:
            end()

    def close(self) -> None:
        """Stop the background work and close all connections."""
        while self.hooks.stops:
            self.hooks.stops.pop()()
        self.redis.close()
        self.database.close()
