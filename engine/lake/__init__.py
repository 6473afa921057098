"""The lake: the Spark session, the Delta tables' places and shapes, and idempotent appends to them."""
