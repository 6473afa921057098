"""Commands: what each role may do, and the record of who did what."""
