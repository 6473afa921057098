-- What tells the log of DDL on captured tables and refuses DDL that would break capture. Only a superuser may create
-- event triggers: run it in the captured database where Highwater's role is none, after `highwater enable -d NAME`.
--   psql -f docs/event_triggers.sql shop
\set ON_ERROR_STOP on

CREATE EVENT TRIGGER highwater_before ON ddl_command_start WHEN TAG IN ('ALTER TABLE', 'DROP INDEX') EXECUTE FUNCTION cdc.before_ddl();
CREATE EVENT TRIGGER highwater_ddl ON ddl_command_end EXECUTE FUNCTION cdc.record_ddl();
CREATE EVENT TRIGGER highwater_drop ON sql_drop EXECUTE FUNCTION cdc.record_drop();
ALTER EVENT TRIGGER highwater_before ENABLE ALWAYS;
ALTER EVENT TRIGGER highwater_ddl ENABLE ALWAYS;
ALTER EVENT TRIGGER highwater_drop ENABLE ALWAYS;
