"""What frontends ask at their start of files, which another service keeps."""

NONE = {"enabled": False, "extensions": []}
NO_KIND = {**NONE, "match": "extensions"}


def test_no_program_shows_files(api):
    assert api.get("/public/preview-apps").ok() == {"version": 1, "apps": []}


def test_there_are_no_thumbnails(api):
    pictures = ("image_thumbnail", "image_preview", "audio_thumbnail", "video_thumbnail")
    shown = api.get("/public/thumbnail-support").ok()
    assert shown == {"version": 1, **dict.fromkeys(pictures, NONE)}


def test_no_media_data_is_read(api):
    assert api.get("/public/media-data-support").ok() == {
        "version": 1,
        "enabled": False,
        "max_source_bytes": 0,
        "kinds": dict.fromkeys(("image", "audio", "video"), NO_KIND),
    }
