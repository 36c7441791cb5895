"""Draws the link that feeds an authenticator app, for the reference page.

Invariant: the link carries a secret, so it is neither kept nor logged, and nothing of it gets into
the drawing as text.
"""

import io

import segno

from app.core.native_pool import NativePool

# One code costs 10 ms, one of the longest links 40, which is too long for the event loop. A thread
# that computes in Python holds the interpreter's lock; with a lower priority it would be kept
# waiting with the lock in its hands, and the loop with it.
_drawing = NativePool(1, most_waiting=16, niceness=0)


def draw(otpauth_uri: str) -> bytes:
    """Return the QR code as SVG, with the quiet zone that scanners need (ISO/IEC 18004, 5.3.8).

    Black on white also on a dark page: many scanners do not know the reverse. Raises: Overloaded.
    """
    return _drawing.run(_svg, otpauth_uri)


def _svg(text: str) -> bytes:
    # A screen is neither torn nor dirty, and with little redundancy the squares are larger.
    code = segno.make_qr(text, error="l")
    file = io.BytesIO()
    code.save(file, kind="svg", scale=4, unit="px", light="#fff", svgclass=None, lineclass=None)
    return file.getvalue()
