"""Runtime of the application that handles this request or command."""

from flask import Flask, current_app

from app.core.runtime import Runtime

EXTENSION = "gatehouse"


def install(app: Flask, rt: Runtime) -> None:
    """Give the application its runtime."""
    app.extensions[EXTENSION] = rt


def of(app: Flask) -> Runtime:
    """Return the runtime of an application."""
    rt: Runtime = app.extensions[EXTENSION]
    return rt


def runtime() -> Runtime:
    """Return the current application's runtime."""
    # The application itself: to ask the proxy for an attribute takes longer.
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    rt: Runtime = app.extensions[EXTENSION]
    return rt
