-- What enabling a database makes in schema cdc, besides publication, slot and event triggers; also what brings
-- the objects of an earlier version up to this one, whose functions are gone by then (objects.py).
-- Whoever alters a table runs record_ddl: nothing here may be read or written, only called.
GRANT USAGE ON SCHEMA cdc TO PUBLIC;

-- Raised with every change of this file: where a database has less, it is upgraded.
CREATE FUNCTION cdc.version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 4';

CREATE OR REPLACE FUNCTION cdc.refuse_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION 'Cannot truncate table ''%.%'' because it is published for replication or enabled for Change Data Capture.',
        TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = 'Msg 4711, Level 16, State 1',
              HINT = 'Delete the rows with DELETE, or disable change data capture for the table first.';
END
$body$;

-- Tracked tables with their partitions, and what their replica identity was before they were tracked.
-- As regclass they are the same tables in a restored copy of the database, whose oids are others.
CREATE TABLE IF NOT EXISTS cdc.tracked_tables (
    table_id regclass PRIMARY KEY,
    root_id regclass NOT NULL,
    replica_identity "char" NOT NULL,
    replica_index regclass
);

-- The index that identifies rows of a capture instance, by the numbers of its columns.
CREATE TABLE IF NOT EXISTS cdc.tracked_indexes (
    object_id int PRIMARY KEY,
    table_id regclass NOT NULL,
    index_name text NOT NULL,
    key int2[] NOT NULL
);

-- Instances enabled with @allow_partition_switch = 0: no partition of their table comes or goes with its rows.
CREATE TABLE IF NOT EXISTS cdc.fixed_partitions (
    object_id int PRIMARY KEY,
    table_id regclass NOT NULL
);

-- Once they were oid. Where somebody's open DDL has read them, they can wait for another version.
DO $body$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'cdc.tracked_tables'::regclass
               AND attname = 'table_id' AND atttypid = 'oid'::regtype) THEN
        ALTER TABLE cdc.tracked_tables ALTER table_id TYPE regclass, ALTER root_id TYPE regclass,
            ALTER replica_index TYPE regclass;
        ALTER TABLE cdc.tracked_indexes ALTER table_id TYPE regclass;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    NULL;
END
$body$;

-- DDL of our own is known by this word, which nobody else can read.
CREATE TABLE IF NOT EXISTS cdc.own_ddl (word text NOT NULL);
INSERT INTO cdc.own_ddl SELECT gen_random_uuid()::text WHERE NOT EXISTS (SELECT FROM cdc.own_ddl);

CREATE FUNCTION cdc.is_own_ddl() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    SELECT coalesce(current_setting('highwater.own', true) = (SELECT word FROM cdc.own_ddl), false)
$body$;

-- Everybody may write words into the log. Ours have a seal, which nobody can make without this key, nor use again:
-- it is of one content in one transaction.
CREATE TABLE IF NOT EXISTS cdc.seal_key (key bytea NOT NULL, is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only));
INSERT INTO cdc.seal_key VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) ON CONFLICT DO NOTHING;

-- The seal of the content with this SHA-256 in a transaction, by the lower 32 bits of its id.
CREATE FUNCTION cdc.seal(xid bigint, digest bytea) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT encode(sha256(key || sha256(key || int8send(xid & 4294967295) || digest)), 'hex') FROM cdc.seal_key
$body$;
REVOKE ALL ON FUNCTION cdc.seal(bigint, bytea) FROM PUBLIC;

-- Words that an earlier version wrote have no seal: they are of transactions of this server with lower ids. Without
-- a row the upgrade isn't over yet.
CREATE TABLE IF NOT EXISTS cdc.unsealed_words (
    below_xid bigint NOT NULL,
    system_identifier bigint NOT NULL,
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only)
);

-- Whether each word of the log is ours, by its prefix there, the lower 32 bits of its transaction's id and the
-- SHA-256 of its content.
CREATE FUNCTION cdc.are_own_words(prefixes text[], xids bigint[], digests bytea[]) RETURNS boolean[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    WITH source AS (
        SELECT near_xid, CASE
            WHEN u.below_xid IS NULL THEN 9223372036854775807
            -- Ids of another server: the database was restored from a dump.
            WHEN u.system_identifier <> (SELECT c.system_identifier FROM pg_control_system() c) THEN 0
            ELSE u.below_xid END AS below_xid
        FROM txid_snapshot_xmax(txid_current_snapshot()) AS near_xid LEFT JOIN cdc.unsealed_words u ON true
    )
    SELECT array_agg(CASE
        -- The whole id is the one nearest to those of now: a transaction that is still ending may have a later one.
        WHEN prefix = 'highwater' THEN
            near_xid + (xid - near_xid % 4294967296 + 6442450944) % 4294967296 - 2147483648 < below_xid
        ELSE prefix = 'highwater.' || cdc.seal(xid, digest) END ORDER BY place)
    FROM unnest(prefixes, xids, digests) WITH ORDINALITY AS word(prefix, xid, digest, place), source
$body$;

-- Writes a word of ours into the log, UTF-8 whatever the database's encoding is.
CREATE FUNCTION cdc.write_word(word json) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    content bytea := CASE getdatabaseencoding()
        WHEN 'SQL_ASCII' THEN convert_to(word::text, 'SQL_ASCII') ELSE convert_to(word::text, 'UTF8') END;
    seal text := cdc.seal(txid_current(), sha256(content));
BEGIN
    IF seal IS NULL THEN
        -- Of a snapshot from before there was a key: the statement would go unnoticed.
        RAISE EXCEPTION 'Change Data Capture was upgraded after this transaction began: run it again.'
            USING ERRCODE = 'serialization_failure';
    END IF;
    PERFORM pg_logical_emit_message(true, 'highwater.' || seal, content);
END
$body$;
REVOKE ALL ON FUNCTION cdc.write_word(json) FROM PUBLIC;

-- Whether a column holds no NULL: from 18 on NOT NULL may hold for new rows alone.
CREATE FUNCTION cdc.is_never_null(table_id oid, attnum int2) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT a.attnotnull AND NOT EXISTS (
        SELECT FROM pg_constraint c
        WHERE c.conrelid = $1 AND c.contype = 'n' AND c.conkey = ARRAY[$2] AND NOT c.convalidated)
    FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum = $2
$body$;

-- Refuses to lose what identifies rows: a unique index over columns that hold no NULL. Of these tables or, with
-- NULL, of all; leaving: an index that is about to be dropped.
CREATE FUNCTION cdc.check_keys(roots oid[], leaving oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    broken record;
BEGIN
    SELECT n.nspname, c.relname, i.index_name, loose.attname AS loose INTO broken
    FROM cdc.tracked_indexes i
    JOIN pg_class c ON c.oid = i.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
    -- A column that was dropped took its indexes along.
    LEFT JOIN pg_attribute loose ON loose.attrelid = i.table_id AND loose.attnum = ANY(i.key)
        AND NOT loose.attisdropped AND NOT cdc.is_never_null(i.table_id, loose.attnum)
    WHERE (roots IS NULL OR i.table_id = ANY(roots)) AND (loose.attname IS NOT NULL OR NOT EXISTS (
        SELECT FROM pg_index x
        WHERE x.indrelid = i.table_id AND x.indexrelid IS DISTINCT FROM leaving
          AND x.indisunique AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
          AND ARRAY(SELECT k.attnum FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
                    WHERE k.place <= x.indnkeyatts ORDER BY k.place) = i.key))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'The unique index ''%'' on source table ''%.%'' is used by Change Data Capture. To alter or drop the index, you must first disable Change Data Capture on the table.',
            broken.index_name, broken.nspname, broken.relname
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 22983, Level 16, State 1',
                  HINT = coalesce('Its column ''' || broken.loose || ''' must stay NOT NULL.',
                                  'Rows are identified by the index.');
    END IF;
END
$body$;
REVOKE ALL ON FUNCTION cdc.check_keys(oid[], oid) FROM PUBLIC;

-- Refuses what would make capture lose changes or mistake rows, of these tracked tables or, with NULL, of all:
-- a statement on another table has nothing to do with them.
CREATE FUNCTION cdc.check_tracking(roots oid[]) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    broken record;
BEGIN
    PERFORM cdc.check_keys(roots, NULL);
    SELECT n.nspname, c.relname INTO broken
    FROM cdc.tracked_tables t
    JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE (roots IS NULL OR t.root_id = ANY(roots))
      AND (c.relreplident <> 'f' OR c.relpersistence <> 'p'
        OR NOT EXISTS (
            SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'highwater_refuse_truncate')
        OR EXISTS (
            -- Rows would be those of the uppermost table in the publication alone.
            SELECT FROM cdc.tracked_tables other
            WHERE t.table_id = t.root_id AND other.root_id <> t.root_id AND other.table_id = other.root_id
              AND other.table_id IN (SELECT relid FROM pg_partition_ancestors(t.table_id)))
        OR (t.table_id = t.root_id AND NOT EXISTS (
            -- Row filters and column lists come with PostgreSQL 15.
            SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
            WHERE p.pubname = 'highwater' AND r.prrelid = t.root_id
              AND p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubviaroot
              AND to_jsonb(r) ->> 'prqual' IS NULL AND to_jsonb(r) ->> 'prattrs' IS NULL)))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'Table ''%.%'' is enabled for Change Data Capture: it must be logged, with REPLICA IDENTITY FULL and its TRUNCATE guard, be whole in publication ''highwater'', and be no part of another tracked table.',
            broken.nspname, broken.relname
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 50024, Level 16, State 1',
                  HINT = 'Disable change data capture for the table first.';
    END IF;
    -- From 18 on: with one, a table that logs whole old rows can no longer be updated.
    SELECT n.nspname, c.relname, a.attname INTO broken
    FROM cdc.tracked_tables t
    JOIN pg_attribute a ON a.attrelid = t.table_id AND a.attgenerated = 'v' AND NOT a.attisdropped
    JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE roots IS NULL OR t.root_id = ANY(roots)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'Table ''%.%'' is enabled for Change Data Capture: column ''%'' can''t be a virtual generated column, because its rows could no longer be updated.',
            broken.nspname, broken.relname, broken.attname
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 50024, Level 16, State 1',
                  HINT = 'Add it as a stored generated column: GENERATED ALWAYS AS (...) STORED.';
    END IF;
END
$body$;
REVOKE ALL ON FUNCTION cdc.check_tracking(oid[]) FROM PUBLIC;

-- Refuses that rows come or go with a partition, where they would not be captured and none was to do so.
CREATE FUNCTION cdc.refuse_switch(root oid, statement text, attaches boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    side text := CASE WHEN attaches THEN 'destination' ELSE 'source' END;
    switched record;
BEGIN
    SELECT n.nspname, c.relname INTO switched
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = root;
    RAISE EXCEPTION '% failed because the partitioned % table ''%.%'' is enabled for Change Data Capture and does not have @allow_partition_switch set to 1.',
        statement, side, switched.nspname, switched.relname
        USING ERRCODE = 'object_not_in_prerequisite_state',
              DETAIL = CASE WHEN attaches THEN 'Msg 22842, Level 16, State 1' ELSE 'Msg 22843, Level 16, State 1' END,
              HINT = 'Move the rows with INSERT and DELETE, or disable change data capture for the table first.';
END
$body$;
REVOKE ALL ON FUNCTION cdc.refuse_switch(oid, text, boolean) FROM PUBLIC;

-- Before a statement that may alter a table or drop an index. With CONCURRENTLY it commits on its way, and
-- refusing it afterwards would leave half of it done; nothing but its text says so, and there it stands alone.
CREATE FUNCTION cdc.check_before_ddl(tag text, named oid, obscure boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    root oid;
BEGIN
    IF cdc.is_own_ddl() THEN
        RETURN;
    END IF;
    IF obscure AND EXISTS (
        SELECT FROM cdc.tracked_indexes WHERE tag = 'DROP INDEX'
        UNION ALL SELECT FROM cdc.fixed_partitions WHERE tag = 'ALTER TABLE')
    THEN
        RAISE EXCEPTION '% CONCURRENTLY is refused: it can''t be told whether it concerns a table that is enabled for Change Data Capture.', tag
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Msg 50024, Level 16, State 1',
                  HINT = 'Write names without U&, and no comment within a comment.';
    END IF;
    IF tag = 'DROP INDEX' THEN
        PERFORM cdc.check_keys(ARRAY[x.indrelid], named) FROM pg_index x WHERE x.indexrelid = named;
        RETURN;
    END IF;
    SELECT t.root_id INTO root
    FROM cdc.tracked_tables t JOIN cdc.fixed_partitions f ON f.table_id = t.root_id WHERE t.table_id = named;
    IF FOUND THEN
        PERFORM cdc.refuse_switch(root, 'ALTER TABLE DETACH PARTITION CONCURRENTLY', false);
    END IF;
    -- What check_partitions compares with when the statement has run.
    PERFORM set_config('highwater.partitions', coalesce(json_object_agg(f.table_id::oid::text, (
        SELECT json_agg(p.relid::oid::text) FROM pg_partition_tree(f.table_id) p))::text, ''), true)
    FROM (SELECT DISTINCT table_id FROM cdc.fixed_partitions) f;
END
$body$;

-- The table or index that a statement with CONCURRENTLY names, as it is written there; else NULL.
CREATE FUNCTION cdc.named_concurrently(statement text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    gap text := '(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)';
    part text := '(?:"(?:[^"]|"")+"|[^\s".;()*]+)';
    name text := format('(%1$s(?:%2$s*\.%2$s*%1$s){0,2})', part, gap);
    detach text := format('^(?:%1$s|;)*ALTER%1$s+TABLE%1$s+(?:IF%1$s+EXISTS%1$s+)?(?:ONLY%1$s*)?\(?%1$s*%2$s%1$s*[)*]?%1$s*'
        'DETACH%1$s+PARTITION%1$s+%2$s(?:%1$s+|(?<="))CONCURRENTLY(?:%1$s|;)*$', gap, name);
    leave text := format('^(?:%1$s|;)*DROP%1$s+INDEX%1$s+CONCURRENTLY(?![\w$])%1$s*(?:IF%1$s+EXISTS%1$s*)?%2$s%1$s*'
        '(?:CASCADE|RESTRICT)?(?:%1$s|;)*$', gap, name);
BEGIN
    RETURN (coalesce(regexp_match(statement, detach, 'i'), regexp_match(statement, leave, 'i')))[1];
END
$body$;

-- Whether a statement may be one with CONCURRENTLY whose name only the server's own parser can read.
CREATE FUNCTION cdc.is_obscure(statement text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT statement ~* '\mCONCURRENTLY\M' AND (statement ~* 'U&"' OR statement ~ '/\*(?:[^*]|\*(?!/))*/\*')
        AND cdc.named_concurrently(statement) IS NULL
$body$;

-- Runs with the search path of whoever sent the statement: its name is found as the statement finds it.
CREATE OR REPLACE FUNCTION cdc.before_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $body$
DECLARE
    statement text := pg_catalog.current_query();
BEGIN
    PERFORM cdc.check_before_ddl(
        TG_TAG, pg_catalog.to_regclass(cdc.named_concurrently(statement)), cdc.is_obscure(statement));
END
$body$;

-- Refuses that partitions of a table that may not have it came or went with the statement just run.
CREATE FUNCTION cdc.check_partitions(root oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    before oid[] := ARRAY(SELECT json_array_elements_text(
        nullif(current_setting('highwater.partitions', true), '')::json -> root::text)::oid);
    after oid[] := ARRAY(SELECT relid FROM pg_partition_tree(root));
BEGIN
    IF before = '{}' THEN
        RETURN;
    END IF;
    IF NOT after <@ before THEN
        PERFORM cdc.refuse_switch(root, 'ALTER TABLE ATTACH PARTITION', true);
    ELSIF NOT before <@ after THEN
        PERFORM cdc.refuse_switch(root, 'ALTER TABLE DETACH PARTITION', false);
    END IF;
END
$body$;

-- Partitions that came to a tracked table or left it: the statements that make each log whole old rows and
-- refuse TRUNCATE, or take that back.
CREATE FUNCTION cdc.follow_partitions(root oid) RETURNS TABLE (owner oid, statement text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    member record;
BEGIN
    -- Fails outside an event trigger: nobody else may write here.
    IF root NOT IN (SELECT cdc.altered_tables()) THEN
        RETURN;
    END IF;
    PERFORM set_config('highwater.own', word, true) FROM cdc.own_ddl;
    FOR member IN
        SELECT c.oid, c.relreplident, c.relowner, i.indexrelid,
               format('%I.%I', n.nspname, c.relname) AS name
        FROM pg_partition_tree(root) t
        JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident
        WHERE NOT EXISTS (SELECT FROM cdc.tracked_tables known WHERE known.table_id = c.oid)
    LOOP
        owner := member.relowner;
        INSERT INTO cdc.tracked_tables VALUES (member.oid, root, member.relreplident, member.indexrelid);
        statement := format('ALTER TABLE ONLY %s REPLICA IDENTITY FULL', member.name);
        RETURN NEXT;
        statement := format('CREATE OR REPLACE TRIGGER highwater_refuse_truncate BEFORE TRUNCATE ON %s'
            ' FOR EACH STATEMENT EXECUTE FUNCTION cdc.refuse_truncate()', member.name);
        RETURN NEXT;
        statement := format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER highwater_refuse_truncate', member.name);
        RETURN NEXT;
    END LOOP;
    FOR member IN
        SELECT c.relowner, format('%I.%I', n.nspname, c.relname) AS name
        FROM cdc.tracked_tables t
        JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_trigger g ON g.tgrelid = c.oid AND g.tgname = 'highwater_refuse_truncate'
        WHERE t.root_id = root AND g.tgenabled <> 'A'
    LOOP
        -- Somebody disabled or enabled all triggers, and meant his own.
        owner := member.relowner;
        statement := format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER highwater_refuse_truncate', member.name);
        RETURN NEXT;
    END LOOP;
    FOR member IN
        SELECT c.oid, c.relowner, format('%I.%I', n.nspname, c.relname) AS name, CASE t.replica_identity
                   WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL'
                   WHEN 'i' THEN coalesce('USING INDEX ' || quote_ident(i.relname), 'DEFAULT')
                   ELSE 'DEFAULT' END AS identity
        FROM cdc.tracked_tables t
        JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_class i ON i.oid = t.replica_index AND i.relkind = 'i'
        WHERE t.root_id = root AND t.table_id <> root
          AND t.table_id NOT IN (SELECT relid FROM pg_partition_tree(root))
    LOOP
        owner := member.relowner;
        DELETE FROM cdc.tracked_tables WHERE table_id = member.oid;
        IF EXISTS (SELECT FROM pg_trigger
                   WHERE tgrelid = member.oid AND tgname = 'highwater_refuse_truncate') THEN
            statement := format('DROP TRIGGER highwater_refuse_truncate ON %s', member.name);
            RETURN NEXT;
        END IF;
        statement := format('ALTER TABLE ONLY %s REPLICA IDENTITY %s', member.name, member.identity);
        RETURN NEXT;
    END LOOP;
END
$body$;

-- Tracked tables that the statement just run has altered, or whose partitions it has.
CREATE FUNCTION cdc.altered_tables() RETURNS SETOF oid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    WITH RECURSIVE command AS (
        SELECT d.classid, d.objid, d.object_type, d.command_tag FROM pg_event_trigger_ddl_commands() d
    ), type(id) AS (
        -- Also types that are made of an altered one.
        SELECT objid FROM command WHERE classid = 'pg_type'::regclass AND command_tag LIKE 'ALTER %'
        UNION SELECT c.reltype FROM command JOIN pg_class c ON c.oid = objid
        WHERE classid = 'pg_class'::regclass AND object_type LIKE 'composite type%'
        UNION SELECT made.id FROM type JOIN (
            SELECT oid AS id, typbasetype AS of FROM pg_type UNION ALL SELECT oid, typelem FROM pg_type
            UNION ALL SELECT rngtypid, rngsubtype FROM pg_range
            UNION ALL SELECT c.reltype, a.atttypid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relkind = 'c') made ON made.of = type.id
    ), named(id) AS (
        SELECT objid FROM command
        WHERE classid = 'pg_class'::regclass AND object_type IN ('table', 'table column')
        UNION SELECT c.oid FROM cdc.tracked_tables t JOIN pg_class c ON c.oid = t.table_id
        JOIN command ON classid = 'pg_namespace'::regclass AND objid = c.relnamespace
        WHERE t.table_id = t.root_id
        UNION SELECT c.oid FROM cdc.tracked_tables t JOIN pg_class c ON c.oid = t.table_id
        JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
        JOIN type ON type.id IN (a.atttypid, c.reloftype)
    ), below(id) AS (
        -- What is altered above is altered in heirs and partitions too.
        SELECT id FROM named UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.id
    )
    SELECT DISTINCT t.root_id::oid FROM cdc.tracked_tables t
    WHERE t.table_id IN (
        SELECT id FROM below UNION SELECT a.relid FROM named, pg_partition_ancestors(named.id::regclass) a)
$body$;

-- The word of a tracked table's shape as it is now. A transaction whose snapshot is from before another one altered
-- the table would see the shape of then: the update of the row that both update fails there, and the statement too.
CREATE FUNCTION cdc.write_altered(root oid) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $body$
    UPDATE cdc.tracked_tables SET root_id = root_id WHERE table_id = root;
    SELECT cdc.write_word(json_build_object(
        'event', 'altered', 'table_id', root::bigint, 'schema', n.nspname, 'table', c.relname,
        'ddl', current_query(), 'columns', (
            SELECT json_agg(json_build_array(a.attnum, a.attname, a.atttypid::bigint, a.atttypmod,
                       a.attgenerated = '' OR (a.attgenerated = 's'
                           AND current_setting('server_version_num')::int >= 180000))
                       ORDER BY a.attnum)
            FROM pg_attribute a WHERE a.attrelid = root AND a.attnum > 0 AND NOT a.attisdropped)))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = root
$body$;
REVOKE ALL ON FUNCTION cdc.write_altered(oid) FROM PUBLIC;

-- The word of a tracked table's shape after a statement that altered it.
CREATE FUNCTION cdc.write_shape(root oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF root IN (SELECT cdc.altered_tables()) THEN
        PERFORM cdc.write_altered(root);
    END IF;
END
$body$;

CREATE FUNCTION cdc.check_after_ddl(roots oid[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    SELECT cdc.check_tracking(roots)
$body$;

-- Runs as whoever alters the table: its partitions are theirs to alter too.
CREATE OR REPLACE FUNCTION cdc.record_ddl() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    roots oid[];
    root oid;
    step record;
BEGIN
    IF cdc.is_own_ddl() THEN
        RETURN;
    END IF;
    roots := ARRAY(SELECT * FROM cdc.altered_tables());
    FOREACH root IN ARRAY roots LOOP
        IF TG_TAG = 'ALTER TABLE' THEN
            PERFORM cdc.check_partitions(root);
        END IF;
        PERFORM cdc.write_shape(root);
        FOR step IN SELECT * FROM cdc.follow_partitions(root) LOOP
            -- Whoever detaches a partition need not own it: then it keeps what it has.
            IF pg_has_role(step.owner, 'USAGE') THEN
                EXECUTE step.statement;
            ELSE
                RAISE WARNING 'Not done, for want of rights: %', step.statement;
            END IF;
        END LOOP;
        PERFORM set_config('highwater.own', '', true);
    END LOOP;
    IF roots <> '{}' THEN
        PERFORM cdc.check_after_ddl(roots);
    ELSIF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_type LIKE 'publication%') THEN
        PERFORM cdc.check_after_ddl(NULL);
    END IF;
END
$body$;

-- A dropped table takes its tracking along; what identifies rows of one that stays may not go.
CREATE OR REPLACE FUNCTION cdc.record_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    dropped oid;
    root oid;
BEGIN
    IF cdc.is_own_ddl() THEN
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
        SELECT t.root_id INTO root
        FROM cdc.tracked_tables t JOIN cdc.fixed_partitions f ON f.table_id = t.root_id
        WHERE t.table_id = dropped AND t.root_id <> dropped AND EXISTS (SELECT FROM pg_class WHERE oid = t.root_id);
        IF FOUND THEN
            PERFORM cdc.refuse_switch(root, TG_TAG, false);
        END IF;
        DELETE FROM cdc.tracked_tables WHERE table_id = dropped;
        DELETE FROM cdc.tracked_indexes WHERE table_id = dropped;
        DELETE FROM cdc.fixed_partitions WHERE table_id = dropped;
    END LOOP;
    -- Columns that went with their type; those that a statement on their table drops are record_ddl's.
    IF TG_TAG NOT LIKE 'ALTER %' THEN
        PERFORM cdc.write_altered(t.root_id) FROM (
            SELECT DISTINCT t.root_id FROM pg_event_trigger_dropped_objects() d
            JOIN cdc.tracked_tables t ON t.table_id = d.objid
            WHERE d.classid = 'pg_class'::regclass AND d.object_type = 'table column') t;
    END IF;
    -- What goes with a dropped table is no loss to another.
    IF EXISTS (
        SELECT FROM pg_event_trigger_dropped_objects() d
        WHERE d.object_type LIKE 'publication%' OR (d.object_type = 'index' AND d.original)
    ) THEN
        PERFORM cdc.check_tracking(NULL);
    ELSE
        PERFORM cdc.check_tracking(ARRAY(
            SELECT t.root_id FROM pg_event_trigger_dropped_objects() d
            JOIN pg_namespace n ON n.nspname = d.address_names[1]
            JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = d.address_names[2]
            JOIN cdc.tracked_tables t ON t.table_id = c.oid
            WHERE d.object_type IN ('table constraint', 'table column', 'trigger')));
    END IF;
END
$body$;

-- What record_ddl calls as whoever alters a table, also where functions are nobody's by default.
GRANT EXECUTE ON FUNCTION cdc.version(), cdc.is_own_ddl(), cdc.named_concurrently(text), cdc.is_obscure(text),
    cdc.check_before_ddl(text, oid, boolean), cdc.altered_tables(), cdc.check_partitions(oid), cdc.write_shape(oid), cdc.follow_partitions(oid),
    cdc.check_after_ddl(oid[]), cdc.refuse_truncate() TO PUBLIC;

-- What whoever reads the log calls, be it another role than the owner.
GRANT EXECUTE ON FUNCTION cdc.are_own_words(text[], bigint[], bytea[]) TO PUBLIC;
