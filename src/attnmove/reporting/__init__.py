"""The report: results, runs and a dataset in, one page that opens anywhere out."""
