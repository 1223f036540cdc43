"""What a node has to say, in one order, held back until the append-only file has what it tells of."""
