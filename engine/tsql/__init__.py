"""T-SQL: batches are parsed whole, checked, and then run over `Engine` and the source database."""
