-- What enabling a database makes in it, besides publication and slot.
CREATE SCHEMA cdc;
COMMENT ON SCHEMA cdc IS 'Change data capture by Highwater. Do not alter: disable the database instead.';

CREATE FUNCTION cdc.refuse_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN
    RAISE EXCEPTION 'Cannot truncate table ''%.%'' because it is published for replication or enabled for Change Data Capture.',
        TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = 'Msg 4711, Level 16, State 1',
              HINT = 'Delete the rows with DELETE, or disable change data capture for the table first.';
END
$body$;

-- What a table's replica identity was before it was tracked.
CREATE TABLE cdc.tracked_tables (
    table_id oid PRIMARY KEY,
    root_id oid NOT NULL,
    replica_identity "char" NOT NULL,
    replica_index oid
);
