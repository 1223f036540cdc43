"""What a node needs from its environment, as protocols: clocks, random numbers, files and its process."""
