"""What people do with their own access tokens."""

TAG = "Access tokens"
