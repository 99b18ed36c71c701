"""Every model behind one contract."""
