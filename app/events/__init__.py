"""Live events: open pages are notified of changes in the storage they can see."""
