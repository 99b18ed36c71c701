"""The one training loop, and what it keeps on disk."""
