"""Shared kernel below HTTP: knows neither Flask nor any area."""
