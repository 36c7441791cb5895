"""The texts of the pages by language, from the catalogues that the modules read, too."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static" / "i18n"
# The parts of a catalogue that each family of pages has. `service` and `service_admin` translate
# sentences of refusals that the code has in English, by these sentences; English has none of them.
PARTS = {
    "signin": ("base", "service", "signin"),
    "account": ("base", "service", "console", "account"),
    "admin": ("base", "service", "console", "admin", "service_admin", "settings"),
}


class Catalogue:
    """The texts of one language, in parts: those of all pages, and those of some."""

    def __init__(self, parts: Mapping[str, Mapping[str, str]]) -> None:
        self._parts = parts

    def of(self, family: str) -> dict[str, str]:
        """Return the texts that pages of a family have."""
        parts = (self._parts.get(part, {}) for part in PARTS[family])
        return {key: text for part in parts for key, text in part.items()}


@cache
def catalogues() -> dict[str, Catalogue]:
    """Return the catalogue of every language."""
    return {
        file.stem: Catalogue(json.loads(file.read_text("utf-8")))
        for file in sorted(FOLDER.glob("*.json"))
    }
