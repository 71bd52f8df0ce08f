"""One server over time: prefill, continuous batching, moves and adapters."""
