"""The browsers that accounts sign in with: notices of new ones, and those that are remembered."""
