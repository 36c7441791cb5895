"""What members do with their teams by themselves."""
