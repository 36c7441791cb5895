"""Runs the rendering of uploads (`rendering.py`), one process with limits per image.

However much memory a decoder allocates, however long it computes, and even if it crashes, it harms
only its own upload. The process gets no connection, secret or setting of the service.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

from app.avatars import files
from app.avatars.errors import (
    EmptyImage,
    FileTypeNotAllowed,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
)

log = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("rendering.py")
# What one render may use: memory on top of that of the program, and CPU time. Legitimate images
# need up to 48 MB and half a second.
MEMORY_BYTES = 64 * 1024 * 1024
CPU_SECONDS = 4
# Renders run at a low priority, so that a busy machine may need many seconds for one.
TIMEOUT_SECONDS = 120
REFUSALS = {
    error.__name__: error
    for error in (FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed)
}
# What Python needs to start; the rest of the environment holds secrets.
ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "TZ")
# By default glibc returns the memory of each large buffer to the kernel, which then has to zero the
# next buffer page by page. Other C libraries ignore these variables.
ALLOCATION = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024 * 1024),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def render(source: Path, folder: Path) -> int:
    """Render `source` into `folder`; return the size of its files in bytes.

    Raises: FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed;
    OSError if the disk fails.
    """
    begun, _, outcome = _output(source, folder).partition(b"\n")
    if not begun:
        log.error("an avatar could not be rendered: %s did not start", PROGRAM)
        raise RenderFailed
    if not outcome:
        log.info("an image exceeded the limits of rendering, or crashed its decoder")
        raise FileTypeNotAllowed
    answer = json.loads(outcome)
    if "written" in answer:
        return int(answer["written"])
    if number := answer.get("errno"):
        raise OSError(number, os.strerror(number))
    if answer["refused"] == RenderFailed.__name__:
        log.error("an avatar could not be rendered: %s", answer["reason"])
    raise REFUSALS[answer["refused"]]


def _output(source: Path, folder: Path) -> bytes:
    """Return what the program prints: a line once it has begun, and another if it survived."""
    numbers = map(str, (MEMORY_BYTES, CPU_SECONDS, *files.SIZES))
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and paths that we made
            [sys.executable, "-P", PROGRAM, source.absolute(), folder.absolute(), *numbers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libraries report damaged input in megabytes of warnings
            env={**kept, **ALLOCATION},
            start_new_session=True,  # Ctrl-C is meant for the service
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        return expired.stdout or b""
    return done.stdout
