"""The application that tests share which need no configuration of their own.

Every test finds it as new: stores are emptied, and an application that a test may have changed in
memory is replaced by a new one.
"""

import math
import shutil
from pathlib import Path
from typing import Any

from flask import Flask
from redis import Redis

from app.core.config import Bucket
from app.core.http_client import FetchCache
from app.factory import create_app
from app.web import runtime as web_runtime
from tests.support import servers, sharing
from tests.support.clock import FakeClock

# Rate limits are on, but high enough that an ordinary test never meets them.
_BUCKET = Bucket(per_second=100_000, burst=100_000)
AMPLE = {"anonymous_bucket": _BUCKET, "session_bucket": _BUCKET}


class SharedApplication:
    """One application after the other, all on the same database and Redis."""

    def __init__(
        self,
        instance: Path,
        database: servers.Pristine,
        redis_url: str,
        configuration: dict[str, Any],
    ) -> None:
        self._instance = instance
        self._configuration = AMPLE | configuration
        self._database = database
        self._redis_url = redis_url
        self._redis = Redis.from_url(redis_url)
        self._app: Flask | None = None
        self.clock = FakeClock()

    def renew(self) -> None:
        """Drop the application if the last test may have changed it; called before each test."""
        if self.clock.has_moved or self._is_changed():
            self.drop()
        self.clock.slept.clear()

    def take(self) -> Flask:
        """Return the application, on empty stores."""
        url = self._database.reset()
        self._redis.flushdb()
        shutil.rmtree(self._instance, ignore_errors=True)
        if self._app is None:
            values = self._configuration
            config = servers.cheap_config(self._instance, url, self._redis_url, **values)
            self._app = create_app(config, clock=self.clock)
            sharing.share_routes(self._app)
        servers.prepare_instance(self._app)
        rt = web_runtime.of(self._app)
        rt.settings.forget()
        rt.http_client.cache = FetchCache(self.clock)
        return self._app

    def drop(self) -> None:
        """End the application, so that the next test gets a new one."""
        if self._app is not None:
            web_runtime.of(self._app).close()
        self._app, self.clock = None, FakeClock()

    def _is_changed(self) -> bool:
        if self._app is None:
            return False
        rt = web_runtime.of(self._app)
        breakers = (rt.redis.breaker, rt.redis.fail_fast)
        is_working = bool(rt.hooks.stops)  # in the background
        return is_working or any(breaker._failed_at > -math.inf for breaker in breakers)
