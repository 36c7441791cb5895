"""An avatar on the wire (decision A20)."""

from typing import Any

from flask import Response, request

from app.avatars.publishing import Uploaded
from app.avatars.service import Picture
from app.core.runtime import Runtime
from app.users import responses as users

MEDIA_TYPE = "image/webp"
# An address never changes what it shows while the same person asks. But two people who share a
# browser may have avatars of the same version, and so of the same address.
CACHING = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Vary": "Authorization, Cookie",
}


def uploaded(rt: Runtime, outcome: Uploaded) -> dict[str, Any]:
    """Return the payload of an upload."""
    return {"profile": users.profile(rt, outcome.account), "applied": outcome.applied}


def is_held_by_client(picture: Picture) -> bool:
    """Tell whether the request names this very picture as one it has."""
    held = request.if_none_match
    return bool(held) and held.contains_weak(picture.etag)


def not_modified(picture: Picture) -> Response:
    """Answer that the client's copy is good."""
    response = Response(status=304, headers=_headers(picture))
    del response.headers["Content-Type"]
    return response


def content(picture: Picture, body: bytes) -> Response:
    """Answer the file."""
    return Response(body, headers=_headers(picture), content_type=MEDIA_TYPE)


def by_proxy(rt: Runtime, picture: Picture) -> Response:
    """Have the proxy in front answer the file, from a location of its own."""
    headers = {**_headers(picture), "X-Accel-Redirect": f"{rt.config.avatar_accel}/{picture.key}"}
    return Response(headers=headers, content_type=MEDIA_TYPE)


def _headers(picture: Picture) -> dict[str, str]:
    return {"ETag": f'"{picture.etag}"', **CACHING}
