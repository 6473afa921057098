"""The grammar of T-SQL's statements, a module for each kind; ``engine/tsql/parser.py`` chooses. Pure."""
