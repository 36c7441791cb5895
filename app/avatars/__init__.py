"""Account avatars: uploading them, choosing their source, serving them."""
