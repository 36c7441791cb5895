r"""Validation of the path a browser goes to after an external sign-in: no open redirect.

Invariant: no accepted path leads a browser to another host, whether it follows the site's origin
or stands alone (spec 03 §4). Browsers drop tabs and line breaks, and treat `\` as `/`.
"""

import unicodedata

from app.external_auth.errors import ReturnPathInvalid

MAX_PATH_BYTES = 2048
HOME = "/"


def checked(typed: str | None) -> str:
    """Return the path; HOME if it is None or blank.

    Raises: ReturnPathInvalid.
    """
    path = (typed or "").strip() or HOME
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    if not is_local or len(path.encode()) > MAX_PATH_BYTES or any(map(_is_control, path)):
        raise ReturnPathInvalid
    return path


def _is_control(character: str) -> bool:
    """Return whether it is a control character, or a line or paragraph separator."""
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}
