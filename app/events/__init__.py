"""Live events: every page hears at once what changed in the storage it can see."""
