"""Many runs side by side: machines, runtimes, providers or points in time. Pure functions."""
