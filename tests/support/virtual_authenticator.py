"""Chromium's virtual authenticator, in place of a real one and its user.

https://chromedevtools.github.io/devtools-protocol/tot/WebAuthn/
"""

from typing import Any, cast

from playwright.sync_api import Page


class VirtualAuthenticator:
    """A platform authenticator that confirms at once, unless told otherwise.

    Without `can_verify` it has no user verification: neither PIN nor fingerprint.
    """

    def __init__(self, page: Page, *, can_verify: bool = True) -> None:
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("WebAuthn.enable", {"enableUI": False})
        options = {
            "protocol": "ctap2",
            "ctap2Version": "ctap2_1",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": can_verify,
            "isUserVerified": can_verify,
            "automaticPresenceSimulation": True,
        }
        answer = self._devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self._id = answer["authenticatorId"]

    def _tell(self, command: str, **arguments: Any) -> Any:
        return self._devtools.send(
            f"WebAuthn.{command}", {"authenticatorId": self._id, **arguments}
        )

    @property
    def passkeys(self) -> list[dict[str, Any]]:
        """Its credentials, as DevTools describes them."""
        return cast("list[dict[str, Any]]", self._tell("getCredentials")["credentials"])

    def withhold_presence(self) -> None:
        self._tell("setAutomaticPresenceSimulation", enabled=False)

    def grant_presence(self) -> None:
        self._tell("setAutomaticPresenceSimulation", enabled=True)

    def fail_user_verification(self) -> None:
        """Make user verification fail from now on."""
        self._tell("setUserVerified", isUserVerified=False)

    def remove(self) -> None:
        """Remove the authenticator with all its credentials."""
        self._tell("removeVirtualAuthenticator")
