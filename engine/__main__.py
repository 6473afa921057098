"""``python -m engine``: the same as ``highwater``."""

from engine.cli.main import main

main()
