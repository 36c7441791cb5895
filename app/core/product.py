"""What only the product's own browser client needs.

It was made for a service that also keeps the files, so it sends and reads members of which this
service makes no use. They stand here, most of them null, empty or zero, so that the client works.
"""

from typing import Any

# Claims of a provider that nothing here reads: taken if blank, and shown as null.
PROVIDER_CLAIMS = ("groups_claim", "avatar_url_claim")

# What frontends may do with files: nothing here.
NONE_SUPPORTED: dict[str, Any] = {"enabled": False, "extensions": []}
NO_PREVIEW_APPS: dict[str, Any] = {"version": 1, "apps": []}
NO_THUMBNAILS: dict[str, Any] = {
    "version": 1,
    "image_thumbnail": NONE_SUPPORTED,
    "image_preview": NONE_SUPPORTED,
    "audio_thumbnail": NONE_SUPPORTED,
    "video_thumbnail": NONE_SUPPORTED,
}
NO_MEDIA_KIND = {**NONE_SUPPORTED, "match": "extensions"}
NO_MEDIA_DATA: dict[str, Any] = {
    "version": 1,
    "enabled": False,
    "max_source_bytes": 0,
    "kinds": {"image": NO_MEDIA_KIND, "audio": NO_MEDIA_KIND, "video": NO_MEDIA_KIND},
}
# What the file side counts, which does not report here.
OF_FILES = {"uploads": 0, "share_creations": 0}
FILE_STATS = {
    "total_files": 0,
    "total_file_bytes": 0,
    "total_blobs": 0,
    "total_blob_bytes": 0,
    "total_shares": 0,
    "uploads_today": 0,
    "shares_today": 0,
}
# Background tasks are the file side's, too; there, one of them reports on the service's health.
NO_BACKGROUND_TASKS: list[Any] = []
HEALTH = {"details": None, "task_id": None}
# Of every setting: all take effect at once, and nobody may add one or publish it.
SETTING = {"requires_restart": False, "source": "system", "visibility": "private", "namespace": ""}
# Storage on this machine, and what else is said of where a policy keeps files.
LOCAL_STORAGE = "asterdrive.storage.local"
CONNECTOR: dict[str, Any] = {"format_version": 1, "schema_version": 1, "values": {}}
NO_BEHAVIOR: dict[str, Any] = {}
