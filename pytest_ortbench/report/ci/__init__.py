"""What CI services show of a run: a comment, a job summary, annotations, reports of GitLab."""
