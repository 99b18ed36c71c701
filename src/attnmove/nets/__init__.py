"""Networks: tensors in, scores out. No file, table or coordinate pair comes in here."""
