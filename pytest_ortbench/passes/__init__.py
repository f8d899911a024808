"""Ways of measuring a case beside the standard one: a folder each, and one registry of them all."""
