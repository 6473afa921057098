"""The highwater command."""
