"""Time-based one-time passwords: SHA-1, 6 digits, steps of 30 s (RFC 6238)."""

import base64
import hmac
from datetime import datetime
from urllib.parse import quote

import pyotp

from app.core.tokens import random_bytes

STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
# How many steps the clock of the user's device may be ahead or behind (RFC 6238 §6).
DRIFT_STEPS = 1


def new_secret() -> str:
    """Return 160 random bits in Base32, 32 characters without padding."""
    return base64.b32encode(random_bytes(SECRET_BYTES)).decode()


def normalised(typed: str) -> str | None:
    """Return a code without whitespace; None unless it is six digits."""
    code = "".join(typed.split())
    return code if len(code) == DIGITS and code.isascii() and code.isdigit() else None


def matching_step(secret: str, code: str, now: datetime, *, after: int | None = None) -> int | None:
    """Return the time step this code belongs to, or None if it matches none.

    `after` is the newest step accepted for the same purpose, None if there is none: that step and
    earlier ones are refused, so that a code works only once (RFC 6238 §5.2).
    """
    totp = pyotp.TOTP(secret, digits=DIGITS, interval=STEP_SECONDS)
    current = int(now.timestamp()) // STEP_SECONDS
    steps = range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1)
    matching = [s for s in steps if hmac.compare_digest(totp.generate_otp(s), code)]
    return next((step for step in matching if after is None or step > after), None)


def otpauth_uri(secret: str, issuer: str, account_name: str) -> str:
    """Return the URI that an authenticator app scans as a QR code."""
    issuer, account_name = quote(issuer, safe=""), quote(account_name, safe="")
    return (
        f"otpauth://totp/{issuer}:{account_name}?secret={secret}&issuer={issuer}"
        f"&algorithm=SHA1&digits={DIGITS}&period={STEP_SECONDS}"
    )
