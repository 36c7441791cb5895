"""Administration over HTTP, a blueprint for each part; /api/v1/admin."""
