"""What a browser says it is, in words that people know.

Its own words are never shown in a mail: whoever signs in chooses them.
"""

import re

from app.mail.words import ENGLISH, WORDS, Words

# The first that fits: most claim to be some of the later ones, too.
BROWSERS = (
    (r"\bEdg(e|A|iOS)?\/", "Edge"),
    (r"\bOPR\/", "Opera"),
    (r"\bSamsungBrowser\/", "Samsung Internet"),
    (r"\b(Firefox|FxiOS)\/", "Firefox"),
    (r"\b(Chrome|CriOS|HeadlessChrome)\/", "Chrome"),
    (r"\bSafari\/", "Safari"),
    (r"^curl\/", "curl"),
)
PLATFORMS = (
    (r"\biPhone\b", "iPhone"),
    (r"\biPad\b", "iPad"),
    (r"\bAndroid\b", "Android"),
    (r"\bWindows\b", "Windows"),
    (r"\b(Macintosh|Mac OS X)\b", "Mac"),
    (r"\bCrOS\b", "ChromeOS"),
    (r"\bLinux\b", "Linux"),
)


def name_of(user_agent: str | None, words: Words = WORDS[ENGLISH]) -> str:
    """Return words such as "Firefox on Windows"."""
    found = [_first(known, user_agent or "") for known in (BROWSERS, PLATFORMS)]
    if all(found):
        return words.device.format(*found)
    return "".join(found) or words.unknown_device


def _first(known: tuple[tuple[str, str], ...], agent: str) -> str:
    return next((name for pattern, name in known if re.search(pattern, agent)), "")
