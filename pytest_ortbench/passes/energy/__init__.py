"""Energy of a case under load, with idle time before."""
