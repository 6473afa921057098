-- Poll by time of day: long sleeps at peak hours, a scan every few seconds else. Times are UTC.
WHILE 1 = 1
BEGIN
    EXEC sys.sp_cdc_scan @maxtrans = 500, @maxscans = 10
    IF DATEPART(hour, GETDATE()) BETWEEN 8 AND 17
        WAITFOR DELAY '00:05:00'
    ELSE
        WAITFOR DELAY '00:00:05'
END
