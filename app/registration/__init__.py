"""Public registration."""
