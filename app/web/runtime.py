"""The runtime of the application that handles this request or command."""

from flask import Flask, current_app

from app.core.runtime import Runtime

EXTENSION = "gatehouse"


def install(app: Flask, rt: Runtime) -> None:
    """Attach its runtime to the application."""
    app.extensions[EXTENSION] = rt


def of(app: Flask) -> Runtime:
    """Return the runtime of an application."""
    rt: Runtime = app.extensions[EXTENSION]
    return rt


def runtime() -> Runtime:
    """Return the current application's runtime."""
    # The application itself: reading an attribute through the proxy is slower.
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    rt: Runtime = app.extensions[EXTENSION]
    return rt
