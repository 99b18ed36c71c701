"""Benchmarks: every figure comes from a fresh process, tools side by side in one run."""
