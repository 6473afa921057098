"""PostgreSQL as a source: its log through a pgoutput slot, and what enabling needs."""
