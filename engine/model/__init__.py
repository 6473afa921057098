"""Frozen value types of change data capture: no I/O, no Spark, nothing of ours imported from above."""
