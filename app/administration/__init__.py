"""The `flask` command groups that cut across areas."""
