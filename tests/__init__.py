"""The suite: it is the specification that runs."""
