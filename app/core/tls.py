"""How this service verifies the certificates of servers that it connects to."""

import os
import ssl

import certifi


def verifying_tls() -> ssl.SSLContext:
    """Return a context that verifies a server's certificate and name; slow, as it loads all CAs.

    A machine with nothing but Python may have no CA bundle of its own, or an empty folder for one.
    """
    known = ssl.get_default_verify_paths()
    has_list = known.cafile or (known.capath and os.listdir(known.capath))
    return ssl.create_default_context(cafile=None if has_list else certifi.where())
