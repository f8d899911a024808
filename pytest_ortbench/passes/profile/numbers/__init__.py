"""What follows from a profile: rates against the peaks of the machine, and what bounds a case."""
