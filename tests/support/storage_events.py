"""What a published storage event must be like, as integrators are told."""

import json

from tests.support.servers import ROOT

SCHEMA = json.loads((ROOT / "docs/storage-event.schema.json").read_text())
