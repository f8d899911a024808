"""Results on disk: a journal line after every case, the final document, list, resolve, resume."""
