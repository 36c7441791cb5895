"""Has uploads rendered, each in a process of its own (`rendering.py`)."""

import logging

from app.avatars.errors import (
    EmptyImage,
    FileTypeNotAllowed,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
)
from app.avatars.staging import Place
from app.core.sandbox import LimitExceeded, Limits, Sandbox, SandboxFailed

log = logging.getLogger(__name__)

RENDERS_AT_ONCE = 2  # in one worker process
# Honest images need up to 48 MB and half a second.
LIMITS = Limits(memory_bytes=64 * 1024 * 1024, cpu_seconds=4)
REFUSALS = (FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed)

_sandbox = Sandbox("app.avatars.rendering:render", LIMITS, REFUSALS)


def render(place: Place) -> int:
    """Make the folder `place.rendered` of the source; return the bytes of its files.

    Runs in a native thread, at most two at once (`rt.renders`).
    Raises: FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed;
    OSError when the disk fails.
    """
    try:
        written: int = _sandbox.call(str(place.source.absolute()), str(place.rendered.absolute()))
    except LimitExceeded:
        log.info("an image needed more than %s, or crashed its decoder", LIMITS)
        raise FileTypeNotAllowed from None
    except SandboxFailed as error:
        log.error("an avatar could not be rendered: %s", error)  # noqa: TRY400 - it says all
        raise RenderFailed from None
    return written
