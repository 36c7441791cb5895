"""What everything stands on: clock, errors, configuration, runtime, texts. Knows no area."""
