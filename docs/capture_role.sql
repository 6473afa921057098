-- The role with which Highwater reads a database, with the least rights that capture needs.
--
-- Run it in the database that is to be captured, as a superuser, once for each owner of captured tables:
--   psql -v role=highwater -v owner=shop_owner -f docs/capture_role.sql shop
-- then give the role a password (\password highwater) and connect it: highwater connect shop -
\set ON_ERROR_STOP on

SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') AS is_missing \gset
\if :is_missing
    CREATE ROLE :"role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
\endif

-- Reads the log: one replication slot.
ALTER ROLE :"role" REPLICATION;

-- Makes schema cdc and one publication.
SELECT current_database() AS database \gset
GRANT CREATE ON DATABASE :"database" TO :"role";

-- Enabling a table sets its replica identity, adds it to the publication and guards it against TRUNCATE: only its
-- owner may.
GRANT :"owner" TO :"role";

-- Marks where decoding can begin, so that scans under load read no log twice (PostgreSQL 16 and later).
SELECT current_setting('server_version_num')::int >= 160000 AS can_mark \gset
\if :can_mark
    GRANT EXECUTE ON FUNCTION pg_log_standby_snapshot() TO :"role";
\endif

-- Writes marks of its own into the log: where scans end, and what DDL did. Everybody may, unless it was revoked.
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, :'role')
FROM pg_proc WHERE proname = 'pg_logical_emit_message' \gexec
