"""A small project beside other pytest plugins: our items, its own tests, and how both end."""
