"""The JSON schema of storage events, as published for integrators."""

import json

from tests.support.servers import ROOT

SCHEMA = json.loads((ROOT / "docs/storage-event.schema.json").read_text())
