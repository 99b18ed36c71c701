"""Evidence: for each target slot the locations in play and what speaks for each of them."""
