"""Errors of avatars."""

from app.core.errors import (
    BadRequest,
    ErrorCode,
    InsufficientStorage,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerFault,
)


class TooManyUploads(RateLimited):
    """The account has reached its limit of concurrent uploads."""

    message = "Too many uploads are under way."


class FileRequired(BadRequest):
    """No part of the body has a file name, or the file is empty."""

    code = ErrorCode.AVATAR_FILE_REQUIRED
    message = "An image file is required."


class UploadReadFailed(BadRequest):
    """The body is not a complete multipart/form-data body."""

    code = ErrorCode.AVATAR_UPLOAD_READ_FAILED
    message = "The upload could not be read as multipart/form-data."


class FileTooLarge(BadRequest):
    """The file, or the rest of the body, has more bytes than allowed."""

    code = ErrorCode.FILE_TOO_LARGE
    message = "The image file is too large."


class FileTypeNotAllowed(BadRequest):
    """The content is not an image of an accepted format, or is damaged."""

    code = ErrorCode.FILE_TYPE_NOT_ALLOWED
    message = "This is not a PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF image that can be read."


class EmptyImage(BadRequest):
    """The image has no pixels."""

    code = ErrorCode.AVATAR_EMPTY_IMAGE
    message = "The image is empty."


class ImageTooLarge(BadRequest):
    """A side of the image exceeds the limit; detected before any pixel is decoded."""

    code = ErrorCode.AVATAR_RENDER_FAILED
    message = "An avatar may have at most 1024 pixels on each side."


class RenderFailed(ServerFault):
    """The image was read but could not be resized or written as WebP."""

    code = ErrorCode.AVATAR_RENDER_FAILED
    message = "The avatar could not be rendered."


class ProcessorUnavailable(PreconditionFailed):
    """The installed image library cannot read the format or write WebP."""

    code = ErrorCode.AVATAR_PROCESSOR_UNAVAILABLE
    message = "This installation cannot process this image format."


class StorageFailed(ServerFault):
    """The avatar folder cannot be written or read."""

    code = ErrorCode.STORAGE_UNKNOWN
    message = "Storage Driver Error"


class VersionsExhausted(ServerFault):
    """The avatar's version counter has reached its maximum."""


class QuotaExceeded(InsufficientStorage):
    """The two files do not fit into the account's quota; all sizes in bytes."""

    code = ErrorCode.STORAGE_QUOTA_EXCEEDED

    def __init__(self, *, quota: int, used: int, need: int) -> None:
        super().__init__(f"quota {quota}, used {used}, need {need}")

    @classmethod
    def example(cls) -> str:
        """Return a sample message for the API description."""
        return cls(quota=1_000_000, used=950_000, need=80_000).public_message


class NothingUploaded(BadRequest):
    """There is no uploaded avatar to switch back to."""

    message = "There is no uploaded avatar. Upload one first."


class SizeUnknown(BadRequest):
    """Avatars are not available in this size."""

    message = "Avatars come in the sizes 512 and 1024."


class AvatarNotFound(NotFound):
    """The account's avatar is not an uploaded one."""

    message = "There is no uploaded avatar."


UPLOAD = (
    UploadReadFailed,
    FileRequired,
    FileTooLarge,
    FileTypeNotAllowed,
    EmptyImage,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
    StorageFailed,
    QuotaExceeded,
    TooManyUploads,
    VersionsExhausted,
)
SET_SOURCE = (NothingUploaded, StorageFailed, VersionsExhausted)
SHOW = (SizeUnknown, AvatarNotFound, StorageFailed)
