"""Strategies shared by the property tests."""

from hypothesis import strategies as st

# The same as st.text() uses by default, but that tries a codec on every character, which takes
# seconds in every process of a first run.
CHARACTERS = st.characters(exclude_categories=["Cs"])
