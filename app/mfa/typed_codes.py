"""How a code that a person typed or pasted is read."""

import unicodedata

# What also stands for a hyphen: the minus sign, and the long vowel mark on its key in Japanese.
_HYPHENS = "\u2212\u30fc"


def characters(typed: str) -> str:
    """Return a code without separators and invisible characters, digits of any script as ASCII."""
    return "".join(
        str(unicodedata.decimal(character, character))
        for character in unicodedata.normalize("NFKC", typed)
        if not _is_separator(character)
    )


def digits(typed: str, count: int) -> str | None:
    """Return the digits of a typed code; None unless it is that many and nothing else."""
    code = characters(typed)
    return code if len(code) == count and code.isascii() and code.isdigit() else None


def _is_separator(character: str) -> bool:
    """Return whether it is a space, a control or format character, or punctuation."""
    category = unicodedata.category(character)
    return category in {"Cc", "Cf"} or category[0] in "ZP" or character in _HYPHENS
