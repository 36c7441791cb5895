"""Prometheus metrics of avatars."""

from prometheus_client import Counter, Gauge, Histogram

UPLOADS = Counter("avatar_uploads_total", "Uploads by what came of them.", ["outcome"])
REJECTIONS = Counter("avatar_rejections_total", "Uploads refused, by code.", ["code"])
SOURCE_BYTES = Histogram(
    "avatar_source_bytes",
    "Sizes of uploaded image files.",
    buckets=(16_384, 65_536, 262_144, 1_048_576, 4_194_304, 10_485_760, 16_777_216),
)
RENDER_SECONDS = Histogram("avatar_render_duration_seconds", "Time to decode, resize and encode.")
WAIT_SECONDS = Histogram("avatar_render_wait_duration_seconds", "Time an upload waited its turn.")
PUBLISH_SECONDS = Histogram("avatar_publish_duration_seconds", "Time of the publishing change.")
WAITING = Gauge(
    "avatar_render_waiting", "Uploads waiting to be rendered.", multiprocess_mode="livesum"
)
ACTIVE = Gauge("avatar_render_active", "Uploads being rendered.", multiprocess_mode="livesum")

# Export every series as 0 from the start: the increase to a series' first sample is never counted.
for _outcome in ("applied", "superseded", "failed"):
    UPLOADS.labels(_outcome)
