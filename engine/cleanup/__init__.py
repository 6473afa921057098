"""Cleanup by retention: which changes are obsolete, and how they go."""
