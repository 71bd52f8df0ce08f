"""One forward pass of one replica: what it holds, computes, moves and waits for."""
