"""What a home needs to run: embedded PostgreSQL, Java, jars, processes."""
