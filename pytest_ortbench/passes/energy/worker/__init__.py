"""What reads the device meanwhile: the meters, the trace of readings, and the trials."""
