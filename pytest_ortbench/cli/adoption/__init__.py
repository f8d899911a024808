"""What ``ortbench init`` finds in a repository, and the files that it writes there."""
