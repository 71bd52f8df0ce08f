"""The documents that people write: cards of models, accelerators, engines and efficiencies, and scenarios."""
