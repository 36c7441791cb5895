"""Errors of preparing and maintaining the installation."""

from app.core.errors import BadRequest, Conflict, Misconfigured


class ZoneUnknown(BadRequest):
    """There is no time zone of this name."""

    message = "There is no time zone of this name; an IANA name such as Europe/Berlin is meant."


class RotationRunning(Conflict):
    """Another rotation of the keys takes unusually long."""

    message = "The keys are being rotated by somebody else; look again in a minute."


class KeysFromEnvironment(Conflict):
    """There is only one key and it comes from the environment; only a key file is rotated here."""

    message = (
        "The keys come from GATEHOUSE_SECRET_KEYS: add a new key at its end and restart all "
        "instances, move it to the front and restart them again, then run this."
    )


class KeysMissing(Misconfigured):
    """There is no key file, but the database has been used with one."""

    message = (
        "The key file is missing, and the database has been used with its keys. Put the file back "
        "from the backup, mount the volume it is on, or set GATEHOUSE_SECRET_KEYS as before."
    )
    remedy = "Only if they are lost for good, run `flask prepare --new-keys` to create new ones."
