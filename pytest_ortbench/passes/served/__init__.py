"""What a service that a run has started takes beside its inferences."""
