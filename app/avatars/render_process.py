"""Runs the rendering of uploads (`rendering.py`) in a sandbox, one process per image."""

import logging

from app.avatars.errors import (
    EmptyImage,
    FileTypeNotAllowed,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
)
from app.avatars.staging import StagedUpload
from app.core.sandbox import LimitExceeded, Limits, Sandbox, SandboxFailed

log = logging.getLogger(__name__)

RENDERS_AT_ONCE = 2  # per worker process
# Legitimate images need up to 48 MB and half a second.
LIMITS = Limits(memory_bytes=64 * 1024 * 1024, cpu_seconds=4)
REFUSALS = (FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed)

_sandbox = Sandbox("app.avatars.rendering:render", LIMITS, REFUSALS)


def render(staged: StagedUpload) -> int:
    """Render `staged.source` into the folder `staged.rendered`; return its size in bytes.

    Runs in a native thread, at most two at a time (`rt.renders`).
    Raises: FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed;
    OSError if the disk fails.
    """
    try:
        written: int = _sandbox.call(str(staged.source.absolute()), str(staged.rendered.absolute()))
    except LimitExceeded:
        log.info("an image needed more than %s, or crashed its decoder", LIMITS)
        raise FileTypeNotAllowed from None
    except SandboxFailed as error:
        log.error("an avatar could not be rendered: %s", error)  # noqa: TRY400 - the message says it all
        raise RenderFailed from None
    return written
