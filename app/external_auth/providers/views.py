"""/admin/external-auth."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from flask import Blueprint

from app.core.access import Operator
from app.external_auth import errors
from app.external_auth.errors import ProviderMisconfigured, ProviderNotFound, ProviderTestFailed
from app.external_auth.models import Provider, ProviderKind
from app.external_auth.providers import managed, service, testing
from app.external_auth.schemas import (
    CreateProviderSchema,
    DraftProviderSchema,
    ManagedProvider,
    ProviderKindItem,
    RemoveProviderQuery,
    TestedProviderData,
    UpdateProviderSchema,
)
from app.store.paging import Page, Paging, part_of
from app.web.guards import admin_may_read, admin_required
from app.web.operation import answers
from app.web.paging import PageQuery, page_of
from app.web.request import json_body, query_args
from app.web.runtime import runtime

bp = Blueprint("admin_external_auth", __name__, url_prefix="/api/v1/admin/external-auth")


@bp.get("/provider-kinds")
@admin_may_read()
@answers(ProviderKindItem(many=True), name="adminListProviderKinds")
def list_kinds() -> list[dict[str, Any]]:
    """List the kinds of provider, and what can be configured for each."""
    return managed.kinds(runtime())


@bp.get("/providers")
@admin_may_read()
@query_args(PageQuery)
@answers(page_of(ManagedProvider), name="adminListProviders")
def list_providers(page: Paging) -> Page:
    """List the providers by display name."""
    rt = runtime()
    found = part_of(service.list_all(rt), page)
    return replace(found, items=managed.shown(rt, found.items))


@bp.post("/providers")
@admin_required(confirmation="if_set")
@json_body(CreateProviderSchema)
@answers(ManagedProvider(), status=201, errors=errors.ADD_PROVIDER, name="adminCreateProvider")
def create(by: Operator, provider_kind: ProviderKind, key: str | None = None, **typed: Any) -> Any:
    """Set up a provider."""
    return _shown(service.add(runtime(), by, kind=provider_kind, key=key, **typed))


@bp.post("/providers/test")
@admin_required(cost="outgoing")
@json_body(DraftProviderSchema)
@answers(TestedProviderData(), errors=errors.TEST_DRAFT, name="adminTestProviderDraft")
def test_draft(by: Operator, provider_kind: ProviderKind, **typed: Any) -> dict[str, Any]:
    """Test a provider that is not set up yet, as far as that is possible without a sign-in.

    For Google and Microsoft, `issuer_url` may name another issuer than the fixed one.
    """
    with _tested():
        return testing.test_draft(runtime(), by, provider_kind, **typed)


@bp.get("/providers/<row:id>")
@admin_may_read()
@answers(ManagedProvider(), errors=(ProviderNotFound,), name="adminGetProvider")
def show(id: int) -> Any:
    """Return one provider."""
    with runtime().reading() as session:
        found = service.named(session, id)
    return _shown(found)


@bp.patch("/providers/<row:id>")
@admin_required(confirmation="if_set")
@json_body(UpdateProviderSchema)
@answers(ManagedProvider(), errors=errors.UPDATE_PROVIDER, name="adminUpdateProvider")
def update(by: Operator, id: int, **typed: Any) -> Any:
    """Change a provider: all that is given, or nothing."""
    return _shown(service.update(runtime(), by, id, **typed))


@bp.delete("/providers/<row:id>")
@admin_required(confirmation="if_set")
@query_args(RemoveProviderQuery)
@answers(errors=errors.REMOVE_PROVIDER, name="adminDeleteProvider")
def delete(by: Operator, id: int, is_forced: bool) -> None:
    """Delete a provider with its links; the accounts stay."""
    service.remove(runtime(), by, id, is_forced=is_forced)


@bp.post("/providers/<row:id>/test")
@admin_required(cost="outgoing")
@answers(TestedProviderData(), errors=errors.TEST_PROVIDER, name="adminTestProvider")
def test(by: Operator, id: int) -> dict[str, Any]:
    """Test a provider, enabled or not, as far as that is possible without a sign-in."""
    with _tested():
        return testing.test(runtime(), by, id)


def _shown(provider: Provider) -> dict[str, Any]:
    [shown] = managed.shown(runtime(), [provider])
    return shown


@contextmanager
def _tested() -> Iterator[None]:
    """Tell what is wrong with a provider as what it is here: the result of its test."""
    try:
        yield
    except ProviderMisconfigured as error:
        raise ProviderTestFailed(error.public_message) from None
