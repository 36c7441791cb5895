"""Health checks, metrics, the frontend's bootstrap configuration, and the API description."""
