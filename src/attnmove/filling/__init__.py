"""Recovering: points or days in; each slot located, with a probability and its origin, or missing with a reason."""
