"""Request rate limits by address, before anything else is looked at (decision A11)."""

from typing import Literal

from app.core.client import Client
from app.web import peer
from app.web.runtime import runtime


def take_token(tier: Literal["anonymous", "session"]) -> None:
    """Count this request.

    Raises: RateLimited.
    """
    rt = runtime()
    if not rt.config.rate_limits:
        return
    bucket = rt.config.anonymous_bucket if tier == "anonymous" else rt.config.session_bucket
    rt.rate_limits.take_from(tier, bucket, Client(peer.client_address()).network)
