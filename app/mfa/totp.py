"""Time-based one-time passwords: SHA-1, 6 digits, steps of 30 s (RFC 6238)."""

import base64
import hmac
from datetime import datetime
from urllib.parse import quote

import pyotp

from app.core.clock import SKEW
from app.core.texts import one_line
from app.crypto.tokens import random_bytes
from app.mfa import typed_codes
from app.settings.frontend_keys import PRODUCT_TITLE

STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
# How many steps the clock of the user's device may be ahead or behind (RFC 6238 §6).
DRIFT_STEPS = 1
# Of a link whose QR code cameras can still read; the issuer is in it twice.
MAX_LABELS_LENGTH = 400
MAX_ACCOUNT_LENGTH = 200


def new_secret() -> str:
    """Return 160 random bits in Base32, 32 characters without padding."""
    return base64.b32encode(random_bytes(SECRET_BYTES)).decode()


def normalised(typed: str) -> str | None:
    """Return the digits of a typed code; None unless they are six, and nothing else."""
    return typed_codes.digits(typed, DIGITS)


def matching_step(secret: str, code: str, now: datetime, *, after: int | None = None) -> int | None:
    """Return the time step this code belongs to, or None if it matches none.

    `after` is the newest step accepted for the same purpose, None if there is none: that step and
    earlier ones are refused, so that a code works only once (RFC 6238 §5.2). One beyond
    `newest_step` was accepted by a clock that was ahead, and does not count.
    """
    totp = pyotp.TOTP(secret, digits=DIGITS, interval=STEP_SECONDS)
    current = int(now.timestamp()) // STEP_SECONDS
    if after is not None and after > newest_step(now):
        after = None
    steps = range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1)
    matching = [s for s in steps if hmac.compare_digest(totp.generate_otp(s), code)]
    return next((step for step in matching if after is None or step > after), None)


def newest_step(now: datetime) -> int:
    """Return the newest time step that any of our machines may have accepted by now."""
    return int((now + SKEW).timestamp()) // STEP_SECONDS + DRIFT_STEPS


def otpauth_uri(secret: str, issuer: str, account_name: str) -> str:
    """Return the URI that an authenticator app scans as a QR code.

    An issuer of which nothing can be shown is called by the product's name.
    """
    account = _label(account_name, MAX_ACCOUNT_LENGTH)
    issuer = _label(issuer, (MAX_LABELS_LENGTH - len(account)) // 2) or PRODUCT_TITLE
    return (
        f"otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}"
        f"&algorithm=SHA1&digits={DIGITS}&period={STEP_SECONDS}"
    )


def _label(name: str, most: int) -> str:
    """Return a name as one line for a URI, without colons, which would end it, and cut to fit."""
    text = one_line(name.replace(":", " "))
    while len(label := quote(text, safe="")) > most:
        text = text[:-1].rstrip()
    return label
