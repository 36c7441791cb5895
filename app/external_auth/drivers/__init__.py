"""One module per kind of provider: how to ask it who somebody is."""
