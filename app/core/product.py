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
# Words that it calls otherwise than its texts for settings are called in general.
OPTION_TEXTS = {
    "audit_log_recorded_actions": "audit_action_{}",
    "frontend_image_preview_preference": "settings_image_preview_preference_option_{}",
}
ACTION_TEXTS = {"admin_create_storage_policy": "admin_create_policy"}
TEMPLATE_TEXT = "settings_mail_template_group_{}"
VARIABLE_TEXT = "settings_template_variable_{}_{}"
# Storage on this machine, and what else is said of where a policy keeps files.
LOCAL_STORAGE = "asterdrive.storage.local"
CONNECTOR: dict[str, Any] = {"format_version": 1, "schema_version": 1, "values": {}}
NO_BEHAVIOR: dict[str, Any] = {}
KEPT_THERE = "Files stay on the machine of the file service."
# What its pages about policies ask of that kind: nothing can be chosen or tried here.
LOCAL_DRIVER: dict[str, Any] = {
    "label": "Local",
    "description": KEPT_THERE,
    "ui": {
        "label_key": "driver_type_local",
        "description_key": "policy_wizard_local_storage_desc",
        "icon_name": None,
        "icon_src": "/static/storage/local-disk.svg",
        "badge_rgb": {"red": 16, "green": 185, "blue": 129},
        "helper_key": "policy_wizard_local_helper",
        "config_step_title_key": "policy_wizard_step_local_title",
        "config_step_description_key": "policy_wizard_step_local_desc",
        "edit_context_key": "policy_edit_context_local_desc",
        "base_path_empty_display": "",
        "base_path_placeholder": "",
    },
    "credential_mode": "none",
    "credential_management": None,
    "credential_schema_version": None,
    "config_schema_version": CONNECTOR["schema_version"],
    "deployment_scope": "instance_local",
    "supports_initial_setup": True,
    "requires_authorization": False,
    "authorization_provider": None,
    "capabilities": {
        "efficient_range": True,
        "capacity": False,
        "list": True,
        "presigned_download": False,
        "storage_native_thumbnail": False,
        "storage_native_media_metadata": False,
        "remote_node_binding": False,
        "object_storage_transfer_strategy": False,
        "object_naming": "opaque_uuid",
    },
    "upload_workflows": {
        "simple_upload": True,
        "simple_upload_capabilities": {
            "server_side_relay": True,
            "policy_limited": True,
            "max_provider_single_request_size": None,
        },
        "stream_upload": True,
        "object_multipart_upload": False,
        "object_multipart_upload_capabilities": None,
        "presigned_upload": False,
        "provider_resumable_upload": False,
        "provider_resumable_upload_capabilities": None,
        "frontend_direct_provider_resumable_upload": False,
    },
    "fields": [],
    "actions": [],
    "promotions": [],
    "related_issues": [],
}
LOCAL_DRIVER_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "driver_type_local": "Local",
        "policy_wizard_local_storage_desc": KEPT_THERE,
        "policy_wizard_local_helper": "Where on the machine is a setting of the file service.",
        "policy_wizard_step_local_title": "Name and limits",
        "policy_wizard_step_local_desc": "Name the policy; nothing else is needed.",
        "policy_edit_context_local_desc": KEPT_THERE,
    },
    "zh": {
        "driver_type_local": "本机",
        "policy_wizard_local_storage_desc": "文件保存在文件服务所在的服务器上。",
        "policy_wizard_local_helper": "具体存放位置由文件服务的设置决定。",
        "policy_wizard_step_local_title": "名称与限制",
        "policy_wizard_step_local_desc": "为策略命名即可。",
        "policy_edit_context_local_desc": "文件保存在文件服务所在的服务器上。",
    },
}
# Its settings page for WebDAV, which the file side has or has not.
NO_WEBDAV = {"endpoint": "", "prefix": ""}
