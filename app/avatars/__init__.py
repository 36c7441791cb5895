"""The picture of an account: uploading, choosing its source, sending it."""
