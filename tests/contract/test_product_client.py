"""What the product's own browser client asks on the pages that this service answers.

Written down from version 0.5.0; `{name}` stands for what an earlier answer told.
"""

import re

from tests.support.api import ApiClient

ORIGIN = "http://localhost:8110"
PASSWORD = "a long Password of hers"
CONNECTOR = {
    "connector_id": "local",
    "format_version": 1,
    "schema_version": 1,
    "values": {},
}
BEHAVIOR = {
    "storage_native_thumbnail_enabled": False,
    "storage_native_thumbnail_extensions": [],
    "storage_native_media_metadata_enabled": False,
    "storage_native_media_metadata_extensions": [],
}
CLAIMS = (
    *("subject_claim", "username_claim", "display_name_claim", "email_claim"),
    *("email_verified_claim", "groups_claim", "avatar_url_claim"),
)
URLS = ("authorization_url", "token_url", "userinfo_url", "icon_url")
PROVIDER = {
    "provider_kind": "oidc",
    "display_name": "Corp",
    "client_id": "files",
    "client_secret": "not a secret",
    "issuer_url": "https://id.example.com",
    "scopes": "openid",
    "enabled": True,
    "require_email_verified": True,
    "auto_link_verified_email_enabled": False,
    "auto_provision_enabled": False,
    "options": {},
    "allowed_domains": None,
    **dict.fromkeys((*CLAIMS, *URLS)),
}
UPDATED_PROVIDER = {
    **{name: value for name, value in PROVIDER.items() if name != "provider_kind"},
    "client_secret": None,
}
NEWEST = "sort_by=created_at&sort_order=desc"
START = """
GET /public/frontend-config
POST /auth/check
GET /auth/external-auth/providers
GET /auth/me
GET /public/preview-apps
GET /public/media-data-support
GET /public/thumbnail-support
GET /teams
GET /auth/sessions
"""
# Pages and what they ask at first, then actions with what was typed.
ADMIN = f"""
GET /admin/config/public_site_url
GET /admin/overview?days=7&timezone=UTC&event_limit=10
GET /admin/users?limit=20&offset=0&{NEWEST}
GET /admin/users?limit=20&offset=0&{NEWEST}&keyword=bobby&role=user&status=active
GET /admin/users/invitations?limit=20&offset=0
GET /admin/teams?limit=20&offset=0&archived=false&{NEWEST}
GET /admin/external-auth/provider-kinds
GET /admin/external-auth/providers?limit=20&offset=0
GET /admin/policy-groups?limit=20&offset=0&{NEWEST}
GET /admin/policy-groups?limit=100&offset=0
GET /admin/policies?limit=20&offset=0&{NEWEST}
GET /admin/policies?limit=100&offset=0
GET /admin/policies/storage-drivers
GET /admin/policies/storage-drivers?context=create
GET /admin/policies/storage-drivers?context=setup
GET /admin/policies/storage-drivers/localizations?context=manage&locale=en
GET /admin/policies/storage-drivers/localizations?context=setup&locale=zh-CN
GET /admin/remote-nodes?limit=100&offset=0
GET /admin/config?limit=100&offset=0
GET /admin/config/schema
GET /admin/config/template-variables
GET /admin/audit-logs?limit=20&offset=0&{NEWEST}
GET /admin/audit-logs?limit=20&offset=0&{NEWEST}&action=admin_create_user&entity_type=user
GET /admin/audit-logs/export?{NEWEST}
GET /admin/system-info
"""
TEAM = """
GET {team}
GET {team}/members?limit=10&offset=0&sort_by=role&sort_order=asc
GET {team}/audit-logs?limit=10&offset=0
GET {team}/audit-logs/export
"""


def test_no_page_of_the_clients_meets_a_refusal(rt, api):
    client = Client(api)
    api.post("/auth/setup", {"username": "ada", "email": "a@example.com", "password": PASSWORD})
    client.do("POST /auth/login", {"identifier": "ada", "password": PASSWORD})
    client.open(START + ADMIN)
    client.do(
        "PUT /admin/config/public_site_url?force=true", {"value": [ORIGIN, "http://localhost"]}
    )
    new = {"username": "bobby", "email": "b@example.com", "password": PASSWORD}
    made = client.do("POST /admin/users", {**new, "must_change_password": False})
    user = f"/admin/users/{made['user']['id']}"
    client.do(f"GET {user}")
    client.do(f"PATCH {user}", {"must_change_password": True, "storage_quota": 104857600})
    client.do(f"PATCH {user}", {"must_change_password": False})
    client.do(f"PUT {user}/password", {"password": PASSWORD})
    client.do(f"DELETE {user}/mfa")
    client.do(f"POST {user}/sessions/revoke")
    invited = client.do("POST /admin/users/invitations", {"email": "new@example.com"})
    client.do(f"POST /admin/users/invitations/{invited['id']}/revoke")
    client.do("PUT /admin/config/auth_allow_user_registration", {"value": "false"})
    client.do("POST /admin/external-auth/providers", PROVIDER)
    [provider] = client.do("GET /admin/external-auth/providers?limit=20&offset=0")["items"]
    client.do(f"PATCH /admin/external-auth/providers/{provider['id']}", UPDATED_PROVIDER)
    client.do(f"DELETE /admin/external-auth/providers/{provider['id']}")
    policy = client.do(
        "POST /admin/policies",
        {
            "name": "Second disk",
            "connection": {
                "behavior": BEHAVIOR,
                "connector_config": CONNECTOR,
                "credential": {"mode": "none"},
            },
            "chunk_size": 5242880,
            "is_default": False,
        },
    )
    group = {
        "name": "Second",
        "description": "",
        "is_enabled": True,
        "is_default": False,
        "items": [{"policy_id": policy["id"], "priority": 1}],
    }
    group_id = client.do("POST /admin/policy-groups", group)["id"]
    moved = {"target_group_id": 1}
    client.do(f"POST /admin/policy-groups/{group_id}/migrate-assignments", moved)
    client.do(f"PATCH /admin/policy-groups/{group_id}", {"name": "Third"})
    client.do(f"DELETE /admin/policy-groups/{group_id}")
    of_admin = {"name": "Ops", "description": "d", "admin_identifier": "ada"}
    sizes = {"policy_group_id": 1, "storage_quota": 5242880}
    team = client.do("POST /admin/teams", {**of_admin, **sizes})
    own = client.do("POST /teams", {"name": "Crew", "description": None})
    for path, changed in (
        (f"/admin/teams/{team['id']}", {"name": "Ops 2", "storage_quota": 0, "policy_group_id": 1}),
        (f"/teams/{own['id']}", {"name": "Crew 2", "description": "s"}),
    ):
        client.do(f"POST {path}/members", {"identifier": "bobby", "role": "member"})
        member = f"{path}/members/{made['user']['id']}"
        client.do(f"PATCH {member}", {"role": "admin"})
        client.do(f"PATCH {path}", changed)
        client.open(TEAM.replace("{team}", path))
        client.do(f"DELETE {member}")
        client.do(f"DELETE {path}")
        client.do(f"POST {path}/restore")
    client.open("GET /teams?archived=true\nGET /webdav-accounts/settings")
    client.do(f"DELETE {user}")


def test_what_the_client_has_words_for_is_named_as_it_names_it(boss):
    """Keys of its catalogue, which it shows raw where it has none."""
    schema = {one["key"]: one for one in boss.get("/admin/config/schema").ok()}
    labels = {
        option["value"]: option["label_i18n_key"]
        for name in ("audit_log_recorded_actions", "frontend_image_preview_preference")
        for option in schema[name]["options"]
    }
    assert labels["user_login"] == "audit_action_user_login"
    assert labels["admin_create_storage_policy"] == "audit_action_admin_create_policy"
    assert labels["preview_first"] == "settings_image_preview_preference_option_preview_first"
    templates = {
        one["template_code"]: one for one in boss.get("/admin/config/template-variables").ok()
    }
    reset = templates["password_reset"]
    assert reset["label_i18n_key"] == "settings_mail_template_group_password_reset"
    assert reset["variables"][0] == {
        "token": "{{username}}",
        "label_i18n_key": "settings_template_variable_username_label",
        "description_i18n_key": "settings_template_variable_username_desc",
    }


def test_a_template_that_is_not_set_has_the_built_in_text(boss):
    subject, html = "mail_template_password_reset_subject", "mail_template_password_reset_html"
    for key in (subject, html):
        shown = boss.get(f"/admin/config/{key}").ok()
        assert shown["is_set"] is False
        assert shown["value"] == shown["default"] != ""
    schema = {one["key"]: one for one in boss.get("/admin/config/schema").ok()}
    assert "{{reset_url}}" in schema[html]["default"]
    assert boss.put(f"/admin/config/{subject}", {"value": "Hello"}).ok()["value"] == "Hello"
    shown = boss.get(f"/admin/config/{subject}").ok()
    assert (shown["value"], shown["default"]) == ("Hello", "{{site_name}}: reset your password")
    assert subject in boss.get("/admin/config/export").ok()
    assert html not in boss.get("/admin/config/export").ok()


def test_a_list_that_is_not_set_stays_a_list(boss):
    shown = boss.get("/admin/config/cors_allowed_origins").ok()
    assert shown["value"] == shown["default"] == []
    schema = {one["key"]: one["default"] for one in boss.get("/admin/config/schema").ok()}
    assert schema["cors_allowed_origins"] == []


def test_texts_of_the_kind_of_storage_are_in_a_language_there_is(boss):
    path = "/admin/policies/storage-drivers/localizations"
    for asked, resolved in (("zh-CN", "zh"), ("EN_us", "en"), ("de", "en")):
        answer = boss.get(f"{path}?locale={asked}").ok()
        [texts] = answer["resources"]
        assert (answer["requested_locale"], texts["resolved_locale"]) == (asked, resolved)
        [driver] = boss.get("/admin/policies/storage-drivers").ok()
        [policy] = boss.get("/admin/policies").ok()["items"]
        assert policy["connector_id"] == driver["connector_id"] == texts["namespace"]
        keys = [value for name, value in driver["ui"].items() if name.endswith("_key")]
        assert set(keys) == texts["messages"].keys()
    assert boss.get(path).ok()["requested_locale"] == "en"


class Client:
    """The client, which never meets a refusal here."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api

    def do(self, request: str, body: object = None) -> object:
        """Send a request, and return the data of its answer."""
        method, path = request.split(" ", 1)
        answer = self.api.call(method, f"/api/v1{path}", body)
        assert answer.status in {200, 201}, (request, answer)
        return None if re.search("/export", path) else answer.data

    def open(self, requests: str) -> None:
        """Send the requests of a page, one a line."""
        for request in filter(None, requests.splitlines()):
            self.do(request)
