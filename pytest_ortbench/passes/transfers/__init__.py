"""What it costs to bring inputs to a device and outputs to the host with each inference."""
