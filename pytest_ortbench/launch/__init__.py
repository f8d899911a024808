"""Host side of a worker: how it starts, how it is asked, how its end becomes a failure."""
