"""/auth/profile/avatar."""

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.routing import BaseConverter

from app.avatars import errors, service
from app.avatars.schemas import SetAvatarSourceSchema, UploadedAvatarData
from app.core.access import Principal, Program, Scope
from app.core.multipart import MultipartBody
from app.users import service as users
from app.users.errors import UserNotFound
from app.users.models import Account, AvatarSource
from app.users.schemas import ProfileInfo
from app.web.guards import admin_may_read, login_required
from app.web.operation import answers
from app.web.peer import client
from app.web.request import file_body, json_body
from app.web.runtime import runtime

MEDIA_TYPE = "image/webp"
# To one person, a URL always shows the same image. But two people who share a browser may have
# avatars of the same version, and so the same URL; hence Vary.
CACHING = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Vary": "Authorization, Cookie",
}

bp = Blueprint("avatars", __name__, url_prefix="/api/v1/auth/profile/avatar")
admin_bp = Blueprint("admin_avatars", __name__, url_prefix="/api/v1/admin/users/<row:id>/avatar")


class PictureSize(BaseConverter):
    """Any last path segment except those of the sibling routes, which have no GET."""

    regex = r"(?!(?:upload|source)$)[^/]+"
    part_isolating = True


bp.record_once(lambda state: state.app.url_map.converters.update(picture_size=PictureSize))


@bp.post("/upload")
@login_required(opened_by=Scope.PROFILE)
@file_body
@answers(UploadedAvatarData(), errors=errors.UPLOAD, name="uploadAvatar")
def upload(principal: Principal | Program, upload: MultipartBody) -> service.Uploaded:
    """Upload an avatar.

    The first part with a file name is used. PNG, JPEG, WebP, GIF, BMP, TIFF and AVIF are
    recognized by their content; a side has at most 1024 pixels. The image is cropped to its middle
    square. `applied` is false when another upload or change of source came first; the avatar is
    then the one that it set.
    """
    return service.upload(runtime(), principal, upload, client())


@bp.put("/source")
@login_required(opened_by=Scope.PROFILE)
@json_body(SetAvatarSourceSchema)
@answers(ProfileInfo(), errors=errors.SET_SOURCE, name="setAvatarSource")
def set_source(principal: Principal | Program, source: AvatarSource) -> Account:
    """Choose where the avatar comes from; an uploaded one is kept, to switch back to."""
    return service.set_source(runtime(), principal, source=source, client=client())


@bp.get("/<picture_size:size>")
@login_required(opened_by=Scope.PROFILE_READ)
@answers(media_type=MEDIA_TYPE, is_conditional=True, errors=errors.SHOW, name="getAvatar")
def show(principal: Principal | Program, size: str) -> ResponseReturnValue:
    """Return the uploaded avatar, 512 or 1024 pixels wide."""
    return _picture(principal.account, size)


@admin_bp.get("/<size>")
@admin_may_read()
@answers(
    media_type=MEDIA_TYPE,
    is_conditional=True,
    errors=(UserNotFound, *errors.SHOW),
    name="adminGetUserAvatar",
)
def show_any(id: int, size: str) -> ResponseReturnValue:
    """Return the uploaded avatar of an account, 512 or 1024 pixels wide."""
    with runtime().reading() as session:
        account = users.get(session, id)
    return _picture(account, size)


def _picture(account: Account, size: str) -> ResponseReturnValue:
    rt = runtime()
    picture = service.picture(account, service.parsed_size(size))
    if request.if_none_match.contains_weak(picture.etag):
        response = Response(status=304)
        del response.headers["Content-Type"]
    elif rt.config.avatar_accel:
        picture = service.found(rt, picture)
        # The reverse proxy sends the file from its internal location (nginx X-Accel-Redirect).
        location = f"{rt.config.avatar_accel}/{picture.key}"
        response = Response(headers={"X-Accel-Redirect": location}, content_type=MEDIA_TYPE)
    else:
        picture, content = service.read(rt, picture)
        response = Response(content, content_type=MEDIA_TYPE)
    response.headers.update(CACHING)
    response.set_etag(picture.etag)
    return response
