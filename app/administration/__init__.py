"""The `flask` command groups that span several areas."""
