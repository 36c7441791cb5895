"""Checks of `flask doctor` on this machine: environment, folders, keys, CPU."""

import errno
import math
import os
import stat
import tempfile
from pathlib import Path

from app.administration.findings import Finding, fail, ok, warn
from app.avatars import files, render_process, rendering
from app.avatars.errors import FileTypeNotAllowed, RenderFailed
from app.core.config import Argon2Cost
from app.core.runtime import Runtime

MAX_HASH_SECONDS = 1.0
# One SQLite page: a disk without room for that is as good as full.
TRIED_BYTES = 4096
# A machine that is busy for a moment must not be reported as slow.
TRIES = 3
ONE_PIXEL = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"


def configuration(rt: Runtime) -> Finding:
    """Report what the environment configures; an invalid value would have aborted the start."""
    if unknown := rt.config.unknown_variables:
        return warn(f"{'. '.join(unknown)}. See the table of variables in README.md.")
    database = "SQLite" if rt.database.is_sqlite else "PostgreSQL"
    redis = "the embedded Valkey" if rt.config.embedded_redis else "an external Redis"
    return ok(f"{database}, {redis}, instance folder {rt.config.instance}.")


def instance_folder(rt: Runtime) -> Finding:
    """Check that the folder is private to the service's own user, and writable."""
    folder = rt.config.instance
    try:
        _try_writing(folder)
    except OSError as error:
        remedy = _remedy(error, "Give it to the user the service runs as.")
        return fail(f"{folder} cannot be written ({error.strerror}). {remedy}")
    if mode := _open_to_others(folder):
        return warn(f"{folder} is open to others ({mode}). Run `chmod 700 {folder}`.")
    return ok("Private.")


def keys(rt: Runtime) -> Finding:
    """Check that the secret keys are present, and private to the service's own user."""
    if rt.keyring.problem is not None:
        return fail(rt.keyring.problem)
    count = len(rt.keyring.keys)
    if not rt.keyring.is_file:
        return ok(f"{count} from GATEHOUSE_SECRET_KEYS.")
    file = rt.keyring.path
    if mode := _open_to_others(file):
        remedy = f"Run `chmod 600 {file}`, then `flask keys rotate`."
        return fail(f"{file} is open to others ({mode}). {remedy}")
    return ok(f"{count} in {file}.")


def avatars(rt: Runtime) -> Finding:
    """Check that avatars can be rendered, and their folder written."""
    folder = rt.config.avatar_dir
    if missing := rendering.missing_formats():
        return fail(f"This Pillow lacks {', '.join(missing)}. Install it from its wheel.")
    try:
        _draw(folder)
    except OSError as error:
        remedy = _remedy(
            error, "Give it to the user the service runs as, or correct GATEHOUSE_AVATAR_DIR."
        )
        return fail(f"{folder} cannot be written ({error.strerror}). {remedy}")
    except (FileTypeNotAllowed, RenderFailed):
        return fail("No picture can be drawn. The log tells why.")
    return ok(f"In {folder}; pictures can be drawn.")


def _draw(folder: Path) -> None:
    staged = files.stage(folder, 0)
    try:
        staged.source.write_bytes(ONE_PIXEL)
        render_process.render(staged.source, staged.rendered)
    finally:
        staged.clear()


def password_hash(rt: Runtime) -> Finding:
    """Check that a hash is expensive enough for an attacker, yet affordable at login."""
    seconds = _least_hash_seconds(rt)
    cost, recommended = rt.config.argon2, Argon2Cost()
    if seconds > MAX_HASH_SECONDS:
        return warn(f"A hash takes {seconds:.1f} s. Lower GATEHOUSE_ARGON2, or use a faster CPU.")
    if cost.memory_kib * cost.passes < recommended.memory_kib * recommended.passes:
        usual = f"{recommended.memory_kib}/{recommended.passes}/{recommended.lanes}"
        return warn(f"GATEHOUSE_ARGON2 is below {usual}. Raise it, or leave it out.")
    return ok(f"A hash takes {1000 * seconds:.0f} ms.")


def _least_hash_seconds(rt: Runtime) -> float:
    """Return the time of the fastest of up to TRIES hashes; stop at one that is fast enough."""
    least = math.inf
    for _ in range(TRIES):
        began = rt.clock.monotonic()
        rt.passwords.hash("a password to measure with")
        least = min(least, rt.clock.monotonic() - began)
        if least <= MAX_HASH_SECONDS:
            break
    return least


def _try_writing(folder: Path) -> None:
    """Write a little and fsync it; the temporary file vanishes in any case."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x" * TRIED_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _remedy(error: OSError, otherwise: str) -> str:
    return "Make room there." if error.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise


def _open_to_others(path: os.PathLike[str]) -> str | None:
    """Return the mode if it grants group or others any access, else None."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"{mode:04o}" if mode & 0o077 else None
