"""What the property tests have in common."""

from hypothesis import strategies as st

# Those that st.text() takes by itself, too; it asks a codec for them, one by one, which takes
# seconds in every process of a first run.
CHARACTERS = st.characters(exclude_categories=["Cs"])
