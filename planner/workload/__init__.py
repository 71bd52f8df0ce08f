"""Traffic in numbers: rates, lengths, burstiness and what requests share."""
