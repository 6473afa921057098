"""How statements run, a module for each kind; ``engine/tsql/interpreter.py`` chooses."""
