"""Health, metrics, what a frontend needs first, and this description."""
