"""The stored procedures (reference/procedures.md): their rules, pure, and what they do step by step."""
