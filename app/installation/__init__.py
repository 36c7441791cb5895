"""The installation as a whole: preparation, keys, cleanup, health, overview."""
