"""What the pages are made of: a thin client of `engine.Engine`, no JVM and no job of its own."""
