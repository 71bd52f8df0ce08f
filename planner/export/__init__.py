"""A plan in the words of others: engine flags and deployment manifests."""
