"""What profiles a session by operator: the runs, the work of each node, and the peaks."""
