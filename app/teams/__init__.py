"""Teams and their members: who shares a workspace."""
