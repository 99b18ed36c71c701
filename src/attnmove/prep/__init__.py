"""Preparation: from Points to a dataset of Days, Locations and Targets."""
