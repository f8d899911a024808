"""Where the time goes, by operator."""
