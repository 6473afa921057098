"""The data collector: snapshots of what monitoring shows, kept in the lake (reference/monitoring.md)."""
