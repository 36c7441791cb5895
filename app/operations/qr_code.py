"""Draws an authenticator app's otpauth:// link as a QR code, for the reference page.

Invariant: the link contains a secret, so it is neither stored nor logged, and no part of it appears
as text in the drawing.
"""

import io

import segno

from app.core.thread_pool import ThreadPool

# A code takes 10 ms, one of the longest links 40 ms: too long for the event loop. The thread is not
# nice, because Python code holds the GIL: preempted while holding it, it would keep the event loop
# waiting (priority inversion).
_drawing = ThreadPool(1, max_queued=16)


def draw(otpauth_uri: str) -> bytes:
    """Return the QR code as SVG, with the quiet zone that scanners need (ISO/IEC 18004, 5.3.8).

    Black on white even on a dark page: many scanners cannot read inverted codes.
    Raises: Overloaded.
    """
    return _drawing.run(_svg, otpauth_uri)


def _svg(text: str) -> bytes:
    # Low error correction: a screen is neither torn nor dirty, and the modules become larger.
    code = segno.make_qr(text, error="l")
    file = io.BytesIO()
    code.save(file, kind="svg", scale=4, unit="px", light="#fff", svgclass=None, lineclass=None)
    return file.getvalue()
