"""Administration of the providers."""
