"""What a node asks of the world outside: clocks, random numbers, files and its process, as protocols."""
