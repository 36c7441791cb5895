"""An OpenID provider on loopback that signs everybody in: `python -m bench.identity_provider`.

It is a process of its own, so that its CPU is not charged to the service. It prints its issuer, and
ends when its standard input does, or at Ctrl-C. The README has people start it with nothing but
`requirements.txt` installed.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from app.core.clock import SystemClock
from tests.support.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider

if TYPE_CHECKING:
    from bench.servers import Service

KEY = "bench"


class IdentityProvider:
    """The benchmark's handle on the provider's process; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.identity_provider"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        printed = self._process.stdout.readline() if self._process.stdout else ""
        self.issuer = printed.strip()
        if not self.issuer:
            raise RuntimeError("the identity provider did not start")

    @property
    def pid(self) -> int:
        """The process id of the provider."""
        return self._process.pid

    def use(self, service: Service) -> None:
        """Configure a service to accept sign-ins by this provider, and to provision accounts."""
        words = ["external-auth", "add", "oidc", "--key", KEY, "--name", "Bench"]
        words += ["--client-id", CLIENT_ID, "--client-secret", "-"]
        words += ["--issuer-url", self.issuer, "--auto-provision"]
        service.flask(*words, stdin=CLIENT_SECRET + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Serve sign-ins until standard input ends."""
    with FakeProvider(SystemClock()) as provider:
        print(provider.issuer, flush=True)
        with suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
