"""A user with an avatar."""

import io
from typing import Any

from PIL import Image

from app.audit.models import Action
from deploy.bed.actors.actor import EXPIRED, AccountHolder
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support import images
from tests.support.api import Answer
from tests.support.factories import KnownUser

COLOURS = (images.RED, images.GREEN, images.BLUE, images.YELLOW)
# After these the new picture may be in place. After a disk failure (500) the old one still is.
UNCLEAR = {503, 599}


class AvatarUser(AccountHolder):
    """Uploads avatars and looks at them through the proxy, which sends the files itself."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser) -> None:
        super().__init__(bed, ledger, user)
        self._files = {colour: images.plain(colour) for colour in COLOURS}
        # The colours that may be shown; None stands for no picture.
        self.shows: set[Any] = {None}

    def step(self) -> None:
        """Upload a picture, or look at it."""
        if not self.is_signed_in:
            self.sign_in()
        elif self.dice.random() < 0.3:
            self.upload(self.dice.choice(COLOURS))
        else:
            self.look()
        self.stopped.wait(0.05)

    def upload(self, colour: Any) -> None:
        """Upload a picture of one colour."""
        answer = self.change(
            Action.USER_UPLOAD_AVATAR,
            "POST",
            "/auth/profile/avatar/upload",
            images.multipart(self._files[colour]),
            headers=images.headers(),
        )
        if answer.status == 200:
            self.check(answer.data["applied"], "an upload without a rival was not applied")
            self.shows = {colour}
        elif answer.status in UNCLEAR:
            self.shows.add(colour)
        elif answer.status < 500:
            self.leave(answer)

    def look(self) -> None:
        """Look at the picture."""
        answer = self.call("GET", "/auth/profile/avatar/512")
        if answer.status == 200:
            self.see(_colour(answer.body))
        elif answer.status == 404:
            self.see(None)
        elif answer.status < 500:
            self.leave(answer)

    def see(self, seen: Any) -> None:
        """Complain about an impossible picture; from now on only what was seen is expected."""
        near = {colour for colour in self.shows if _is_near(seen, colour)}
        self.check(bool(near), f"shows {seen} instead of {self.shows}")
        self.shows = near or {seen}

    def leave(self, answer: Answer) -> None:
        """Sign in again when the session has expired, as it does when a clock is set forward."""
        self.check(answer.code == EXPIRED, f"was refused: {answer}")
        self.forget()


def _colour(content: bytes) -> Any:
    with Image.open(io.BytesIO(content), formats=["WEBP"]) as image:
        return image.convert("RGB").getpixel((256, 256))


def _is_near(seen: Any, colour: Any) -> bool:
    if seen is None or colour is None:
        return seen is colour
    return images.is_near(seen, colour)
