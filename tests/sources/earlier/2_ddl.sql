-- What enabling a database makes in it, besides publication and slot.
CREATE SCHEMA cdc;
COMMENT ON SCHEMA cdc IS 'Change data capture by Highwater. Do not alter: disable the database instead.';
-- Whoever alters a table runs record_ddl: nothing here may be read or written, only called.
GRANT USAGE ON SCHEMA cdc TO PUBLIC;

CREATE FUNCTION cdc.refuse_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN
    RAISE EXCEPTION 'Cannot truncate table ''%.%'' because it is published for replication or enabled for Change Data Capture.',
        TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = 'Msg 4711, Level 16, State 1',
              HINT = 'Delete the rows with DELETE, or disable change data capture for the table first.';
END
$body$;

-- Tracked tables with their partitions, and what their replica identity was before they were tracked.
CREATE TABLE cdc.tracked_tables (
    table_id oid PRIMARY KEY,
    root_id oid NOT NULL,
    replica_identity "char" NOT NULL,
    replica_index oid
);

-- The index that identifies rows of a capture instance, by the numbers of its columns.
CREATE TABLE cdc.tracked_indexes (
    object_id int PRIMARY KEY,
    table_id oid NOT NULL,
    index_name text NOT NULL,
    key int2[] NOT NULL
);

-- The words that an event trigger writes into the log are UTF-8 whatever the database's encoding is.
CREATE FUNCTION cdc.write_word(word json) RETURNS void LANGUAGE sql SET search_path = pg_catalog AS $body$
    SELECT pg_logical_emit_message(true, 'highwater', CASE getdatabaseencoding()
        WHEN 'SQL_ASCII' THEN convert_to(word::text, 'SQL_ASCII') ELSE convert_to(word::text, 'UTF8') END)
$body$;
REVOKE ALL ON FUNCTION cdc.write_word(json) FROM PUBLIC;

-- Refuses what would make capture lose changes or mistake rows.
CREATE FUNCTION cdc.check_tracking() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
DECLARE
    broken record;
BEGIN
    SELECT n.nspname, c.relname, i.index_name INTO broken
    FROM cdc.tracked_indexes i
    JOIN pg_class c ON c.oid = i.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE NOT EXISTS (
        SELECT FROM pg_index x
        WHERE x.indrelid = i.table_id AND x.indisunique AND x.indpred IS NULL AND x.indexprs IS NULL
          AND ARRAY(SELECT k.attnum FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
                    WHERE k.place <= x.indnkeyatts ORDER BY k.place) = i.key)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'The unique index ''%'' on source table ''%.%'' is used by Change Data Capture. To alter or drop the index, you must first disable Change Data Capture on the table.',
            broken.index_name, broken.nspname, broken.relname
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 22983, Level 16, State 1';
    END IF;
    SELECT n.nspname, c.relname INTO broken
    FROM cdc.tracked_tables t
    JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relreplident <> 'f' OR (t.table_id = t.root_id AND NOT EXISTS (
        SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
        WHERE p.pubname = 'highwater' AND r.prrelid = t.root_id))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'Table ''%.%'' is enabled for Change Data Capture: its REPLICA IDENTITY must stay FULL, and it must stay in publication ''highwater''.',
            broken.nspname, broken.relname
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 50024, Level 16, State 1',
                  HINT = 'Disable change data capture for the table first.';
    END IF;
END
$body$;
REVOKE ALL ON FUNCTION cdc.check_tracking() FROM PUBLIC;

-- Partitions that came to a tracked table or left it: the statements that make each log whole old rows and
-- refuse TRUNCATE, or take that back.
CREATE FUNCTION cdc.follow_partitions(root oid) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $body$
DECLARE
    member record;
BEGIN
    -- Fails outside an event trigger: nobody else may write here.
    IF root NOT IN (SELECT cdc.altered_tables()) THEN
        RETURN;
    END IF;
    FOR member IN
        SELECT c.oid, c.relreplident, i.indexrelid, format('%I.%I', n.nspname, c.relname) AS name
        FROM pg_partition_tree(root) t
        JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident
        WHERE NOT EXISTS (SELECT FROM cdc.tracked_tables known WHERE known.table_id = c.oid)
    LOOP
        INSERT INTO cdc.tracked_tables VALUES (member.oid, root, member.relreplident, member.indexrelid);
        RETURN NEXT format('ALTER TABLE ONLY %s REPLICA IDENTITY FULL', member.name);
        RETURN NEXT format('CREATE OR REPLACE TRIGGER highwater_refuse_truncate BEFORE TRUNCATE ON %s'
            ' FOR EACH STATEMENT EXECUTE FUNCTION cdc.refuse_truncate()', member.name);
        RETURN NEXT format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER highwater_refuse_truncate', member.name);
    END LOOP;
    FOR member IN
        SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, CASE t.replica_identity
                   WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL'
                   WHEN 'i' THEN coalesce('USING INDEX ' || quote_ident(i.relname), 'DEFAULT')
                   ELSE 'DEFAULT' END AS identity
        FROM cdc.tracked_tables t
        JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_class i ON i.oid = t.replica_index AND i.relkind = 'i'
        WHERE t.root_id = root AND t.table_id <> root
          AND t.table_id NOT IN (SELECT relid FROM pg_partition_tree(root))
    LOOP
        DELETE FROM cdc.tracked_tables WHERE table_id = member.oid;
        IF EXISTS (SELECT FROM pg_trigger
                   WHERE tgrelid = member.oid AND tgname = 'highwater_refuse_truncate') THEN
            RETURN NEXT format('DROP TRIGGER highwater_refuse_truncate ON %s', member.name);
        END IF;
        RETURN NEXT format('ALTER TABLE ONLY %s REPLICA IDENTITY %s', member.name, member.identity);
    END LOOP;
END
$body$;

-- Tracked tables that the statement just run has altered, or whose partitions it has.
CREATE FUNCTION cdc.altered_tables() RETURNS SETOF oid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $body$
    SELECT DISTINCT t.root_id
    FROM pg_event_trigger_ddl_commands() d
    JOIN cdc.tracked_tables t ON t.table_id IN (d.objid, pg_partition_root(d.objid::regclass))
    WHERE d.classid = 'pg_class'::regclass AND d.object_type IN ('table', 'table column')
$body$;

-- The word of a tracked table's shape after a statement that altered it.
CREATE FUNCTION cdc.write_shape(root oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $body$
BEGIN
    PERFORM cdc.write_word(json_build_object(
        'event', 'altered', 'table_id', root::bigint, 'schema', n.nspname, 'table', c.relname,
        'ddl', current_query(), 'columns', (
            SELECT json_agg(json_build_array(a.attnum, a.attname, a.atttypid::bigint, a.atttypmod,
                       a.attgenerated = '' OR (a.attgenerated = 's'
                           AND current_setting('server_version_num')::int >= 180000))
                       ORDER BY a.attnum)
            FROM pg_attribute a WHERE a.attrelid = root AND a.attnum > 0 AND NOT a.attisdropped)))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = root AND root IN (SELECT cdc.altered_tables());
END
$body$;

CREATE FUNCTION cdc.check_after_ddl() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $body$
    SELECT cdc.check_tracking()
$body$;

-- Runs as whoever alters the table: its partitions are theirs to alter too.
CREATE FUNCTION cdc.record_ddl() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
DECLARE
    root oid;
    statement text;
BEGIN
    IF current_setting('highwater.own', true) = 'on' THEN
        RETURN;
    END IF;
    FOR root IN SELECT * FROM cdc.altered_tables() LOOP
        PERFORM cdc.write_shape(root);
        PERFORM set_config('highwater.own', 'on', true);
        FOR statement IN SELECT * FROM cdc.follow_partitions(root) LOOP
            EXECUTE statement;
        END LOOP;
        PERFORM set_config('highwater.own', 'off', true);
    END LOOP;
    PERFORM cdc.check_after_ddl();
END
$body$;

-- A dropped table takes its tracking along; what identifies rows of one that stays may not go.
CREATE FUNCTION cdc.record_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $body$
DECLARE
    dropped oid;
BEGIN
    IF current_setting('highwater.own', true) = 'on' THEN
        RETURN;
    END IF;
    FOR dropped IN
        SELECT d.objid FROM pg_event_trigger_dropped_objects() d
        JOIN cdc.tracked_tables t ON t.table_id = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0
    LOOP
        IF EXISTS (SELECT FROM cdc.tracked_tables WHERE table_id = dropped AND root_id = dropped) THEN
            PERFORM cdc.write_word(json_build_object(
                'event', 'dropped', 'table_id', dropped::bigint, 'ddl', current_query()));
        END IF;
        DELETE FROM cdc.tracked_tables WHERE table_id = dropped;
        DELETE FROM cdc.tracked_indexes WHERE table_id = dropped;
    END LOOP;
    PERFORM cdc.check_tracking();
END
$body$;

CREATE EVENT TRIGGER highwater_ddl ON ddl_command_end EXECUTE FUNCTION cdc.record_ddl();
CREATE EVENT TRIGGER highwater_drop ON sql_drop EXECUTE FUNCTION cdc.record_drop();
