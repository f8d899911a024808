"""What machines cost for a load: from measured runs and a table of prices. Pure functions."""
