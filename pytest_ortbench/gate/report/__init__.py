"""What the gate found, for people: lines of the terminal and of the self-test."""
