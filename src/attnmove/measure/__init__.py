"""Measuring: every model on the same targets, in slices, with intervals over users."""
