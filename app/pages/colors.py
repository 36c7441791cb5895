"""Colours by perceived lightness (OKLCH), and the contrast of two of them (WCAG 2.2, 1.4.3)."""

import math

RGB = tuple[float, float, float]

# https://www.w3.org/TR/css-color-4/#ok-lab
_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_LMS = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
_STEPS = 100
_LUMINANCE = (0.2126, 0.7152, 0.0722)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def readable(color: str, *grounds: str, ratio: float, darken: bool) -> str:
    """Return the colour nearest in lightness that contrasts enough with every ground.

    `darken` says in which direction to look for it.
    """
    lightness, chroma, hue = _lch(color)
    end = 0.0 if darken else 1.0
    for step in range(_STEPS + 1):
        found = _hex(lightness + (end - lightness) * step / _STEPS, chroma, hue)
        if all(contrast(found, ground) >= ratio for ground in grounds):
            return found
    return "#000000" if darken else "#ffffff"


def shifted(color: str, by: float) -> str:
    """Return a colour that much lighter, or darker if `by` is negative."""
    lightness, chroma, hue = _lch(color)
    return _hex(min(max(lightness + by, 0.0), 1.0), chroma, hue)


def mixed(color: str, ground: str, share: float) -> str:
    """Return the ground with a share of the colour over it, from 0 to 1."""
    pairs = zip(_channels(color), _channels(ground), strict=True)
    return _text(tuple(share * upper + (1 - share) * lower for upper, lower in pairs))


def _channels(color: str) -> tuple[float, ...]:
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _text(channels: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(min(max(part, 0), 1) * 255):02x}" for part in channels)


def _linear(color: str) -> tuple[float, ...]:
    parts = _channels(color)
    return tuple(p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)


def _luminance(color: str) -> float:
    return _dot(_LUMINANCE, _linear(color))


def _dot(row: tuple[float, ...], column: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(row, column, strict=True))


def _times(matrix: tuple[RGB, ...], column: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(_dot(row, column) for row in matrix)


def _lch(color: str) -> tuple[float, float, float]:
    lms = tuple(math.cbrt(part) for part in _times(_TO_LMS, _linear(color)))
    lightness, a, b = _times(_TO_LAB, lms)
    return lightness, math.hypot(a, b), math.atan2(b, a)


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """Return the colour, with less chroma where a screen cannot show as much."""
    for step in range(_STEPS + 1):
        c = chroma * (1 - step / _STEPS)
        lms = _times(_FROM_LAB, (lightness, c * math.cos(hue), c * math.sin(hue)))
        linear = _times(_FROM_LMS, tuple(part**3 for part in lms))
        if all(-0.0001 <= part <= 1.0001 for part in linear):
            break
    parts = (max(part, 0.0) for part in linear)
    return _text(
        tuple(p * 12.92 if p <= 0.0031308 else 1.055 * p ** (1 / 2.4) - 0.055 for p in parts)
    )
