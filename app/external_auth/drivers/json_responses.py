"""Parsing of the JSON in a provider's responses."""

import json
import math
from typing import Any, NoReturn

import requests

from app.core.http_client import Refused
from app.external_auth.errors import ProviderRejected


def parse_text(text: bytes | str) -> Any:
    """Return the value of a JSON text; bytes must be UTF-8 (RFC 8259 §8.1).

    Raises: ValueError, also for numbers that are not finite and for text nested too deeply.
    """
    if isinstance(text, bytes):  # json.loads would accept UTF-16 and UTF-32 as well
        text = text.decode("utf-8-sig")
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_value(response: requests.Response) -> Any:
    """Return the JSON value of a successful response, whatever its content type.

    Raises: ProviderRejected.
    """
    if not 200 <= response.status_code < 300:
        raise ProviderRejected(f"status {response.status_code}")
    try:
        return parse_text(response.content)
    except ValueError:
        raise ProviderRejected("the answer is not JSON") from None


def parse_object(response: requests.Response) -> dict[str, Any]:
    """Return the JSON object of a successful response.

    Raises: ProviderRejected.
    """
    found = parse_value(response)
    if not isinstance(found, dict):
        raise ProviderRejected("the answer is not an object")
    return found


def transport_reason(error: requests.RequestException) -> str:
    """Describe a transport error: by its text only if it is our own, which repeats no secret."""
    return str(error) if isinstance(error, Refused) else type(error).__name__


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
