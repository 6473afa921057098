"""The bench's reader, and measurements of our own."""
