"""The avatar: uploaded, rendered, published, switched and sent."""
