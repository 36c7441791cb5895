r"""Where a browser goes after an external sign-in: a path of this site and nothing else.

Invariant: no accepted path leads a browser to another host, whether it stands behind the site's
origin or alone (spec 03 §4). A browser drops tabs and line ends, and takes `\` for `/`.
"""

import unicodedata

from app.external_auth.errors import ReturnPathInvalid

LONGEST_BYTES = 2048
HOME = "/"


def checked(typed: str | None) -> str:
    """Return the path; None and blank lead home.

    Raises: ReturnPathInvalid.
    """
    path = (typed or "").strip() or HOME
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    if not is_local or len(path.encode()) > LONGEST_BYTES or any(map(_is_control, path)):
        raise ReturnPathInvalid
    return path


def _is_control(character: str) -> bool:
    """Tell whether a character is a control, or ends a line."""
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}
