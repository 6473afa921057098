"""What SQL Server Agent is to CDC: one process that owns the Spark session and runs the jobs."""
