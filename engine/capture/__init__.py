"""One scan cycle: pieces of the log become change rows, are appended, published and confirmed."""
