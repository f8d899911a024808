"""The numbers of loads: reading what is asked, how long it must last, what its tests say."""
