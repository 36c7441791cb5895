"""Chromium's virtual authenticator, in place of a person's finger.

https://chromedevtools.github.io/devtools-protocol/tot/WebAuthn/
"""

from typing import Any

from playwright.sync_api import Page


class VirtualAuthenticator:
    """A built-in authenticator that says yes at once, unless told otherwise.

    Without `can_verify` it knows neither PIN nor finger.
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
        """What it holds, as DevTools describes it."""
        return self._tell("getCredentials")["credentials"]

    def let_nobody_touch_it(self) -> None:
        self._tell("setAutomaticPresenceSimulation", enabled=False)

    def let_somebody_touch_it(self) -> None:
        self._tell("setAutomaticPresenceSimulation", enabled=True)

    def meet_a_stranger(self) -> None:
        """From now on the verification of the user fails."""
        self._tell("setUserVerified", isUserVerified=False)

    def remove(self) -> None:
        """Take it out of the machine, with all it holds."""
        self._tell("removeVirtualAuthenticator")
