"""What scores labelled data through a session: data, labels and the comparison."""
