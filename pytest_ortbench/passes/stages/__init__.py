"""The user's stages around inference."""
