"""One file a page: layout and calls, no logic."""
