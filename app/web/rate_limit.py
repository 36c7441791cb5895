"""Request rate limits per client network, applied before anything else."""

from typing import Literal

from app.core.client import Client
from app.web import peer
from app.web.runtime import runtime


def take_token(tier: Literal["anonymous", "session"]) -> None:
    """Take a token for this request from the caller's bucket of `tier`.

    Raises: RateLimited.
    """
    rt = runtime()
    if not rt.config.rate_limits:
        return
    bucket = rt.config.anonymous_bucket if tier == "anonymous" else rt.config.session_bucket
    rt.rate_limits.take_for_network(tier, bucket, Client(peer.client_address()).network)
