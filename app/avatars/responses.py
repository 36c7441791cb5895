"""HTTP responses of avatars (decision A20)."""

from typing import Any

from flask import Response, request

from app.avatars.publishing import Uploaded
from app.avatars.service import Picture
from app.core.runtime import Runtime
from app.users import responses as users

MEDIA_TYPE = "image/webp"
# To one person, a URL always shows the same image. But two people who share a browser may have
# avatars of the same version, and so the same URL; hence Vary.
CACHING = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Vary": "Authorization, Cookie",
}


def uploaded(rt: Runtime, outcome: Uploaded) -> dict[str, Any]:
    """Return the payload of an upload."""
    return {"profile": users.profile(rt, outcome.account), "applied": outcome.applied}


def is_held_by_client(picture: Picture) -> bool:
    """Return whether If-None-Match names this picture."""
    held = request.if_none_match
    return bool(held) and held.contains_weak(picture.etag)


def not_modified(picture: Picture) -> Response:
    """Return 304: the client's cached copy is current."""
    response = Response(status=304, headers=_headers(picture))
    del response.headers["Content-Type"]
    return response


def content(picture: Picture, body: bytes) -> Response:
    """Return the file's content."""
    return Response(body, headers=_headers(picture), content_type=MEDIA_TYPE)


def by_proxy(rt: Runtime, picture: Picture) -> Response:
    """Have the reverse proxy send the file from its internal location (nginx X-Accel-Redirect)."""
    headers = {**_headers(picture), "X-Accel-Redirect": f"{rt.config.avatar_accel}/{picture.key}"}
    return Response(headers=headers, content_type=MEDIA_TYPE)


def _headers(picture: Picture) -> dict[str, str]:
    return {"ETag": f'"{picture.etag}"', **CACHING}
