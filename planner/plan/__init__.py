"""The choice: which plan, why, and what would change it."""
