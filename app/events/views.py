"""/auth/events/storage."""

from flask import Blueprint, Flask, Response, current_app, request
from flask.typing import ResponseReturnValue

from app.core.access import Principal, Program, Scope
from app.events import errors
from app.events.hub import Hub
from app.events.schemas import StorageEvent
from app.web.guards import login_required
from app.web.operation import answers

PREFIX = "/api/v1/auth/events"
ROUTE = "/storage"

bp = Blueprint("events", __name__, url_prefix=PREFIX)

HUB = "gatehouse_event_hub"
MEDIA_TYPE = "text/event-stream"
# X-Accel-Buffering: else nginx would hold frames back until a buffer is full.
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}


def install(app: Flask, hub: Hub) -> None:
    """Register this process's hub for the route."""
    app.extensions[HUB] = hub


@bp.get(ROUTE)
@login_required(opened_by=Scope.EVENTS)
@answers(
    media_type=MEDIA_TYPE,
    event=StorageEvent(),
    may_be_empty=True,
    errors=errors.STREAM,
    name="streamStorageEvents",
)
def storage(principal: Principal | Program) -> ResponseReturnValue:
    """Stream the changes in the workspaces the account can see, as server-sent events.

    Each event is one `data:` line of JSON; a comment every 15 seconds shows that the stream is
    alive. `sync.required` means that events were missed and everything should be reloaded. The
    stream ends when the session does, or the access token. The answer is 204 while the service is
    stopping.
    """
    if request.method == "HEAD":
        return Response(headers=HEADERS, content_type=MEDIA_TYPE)
    hub: Hub = current_app.extensions[HUB]
    opened_with = principal.token.id if isinstance(principal, Program) else principal.session_id
    # gunicorn's; other servers do not give it.
    connection = request.environ.get("gunicorn.socket")
    stream = hub.open(principal.user_id, opened_with, connection)
    if stream is None:
        return Response(status=204, headers={"Cache-Control": "no-cache"})
    # Passed through unwrapped: a wrapper would keep request and response alive with the stream.
    return Response(stream, headers=HEADERS, content_type=MEDIA_TYPE, direct_passthrough=True)
