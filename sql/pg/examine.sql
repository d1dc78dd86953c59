-- The figures that `weft doctor` judges. Nothing here is locked or changed. Ages are microseconds.

-- name: examine_work (now bigint)
-- returns: ready bigint, oldest_ready bigint?, running bigint, expired bigint, oldest_expired bigint?
-- Looks at everything that lives. `ord` is the time of the submission.
SELECT count(*) FILTER (WHERE state = @ready), min(ord) FILTER (WHERE state = @ready),
       count(*) FILTER (WHERE state = @running),
       count(*) FILTER (WHERE state = @running AND due <= :now),
       min(due) FILTER (WHERE state = @running AND due <= :now)
  FROM weft.live;

-- name: examine_indexes ()
-- returns: name text, valid bool
SELECT i.relname::text, x.indisvalid AND x.indisready
  FROM pg_catalog.pg_class t
  JOIN pg_catalog.pg_index x ON x.indrelid = t.oid
  JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
 WHERE t.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class
                          WHERE oid = 'weft.live'::regclass)
   AND t.relkind = 'r';

-- name: examine_inbox (since bigint)
-- returns: reason text, number bigint, example uuid, namespace text
-- only: pg, because SQLite has no inbox
-- Rows of the inbox that were refused since then: each reason with its number and its last row.
SELECT r.reason, count(*), (array_agg(r.id ORDER BY r.at DESC))[1], (array_agg(r.namespace ORDER BY r.at DESC))[1]
  FROM weft.inbox_refused r
 WHERE r.at >= :since
 GROUP BY r.reason
 ORDER BY count(*) DESC, r.reason LIMIT 4;

-- name: examine_server ()
-- returns: version text, bytes bigint, connections bigint, max_connections int, fsync bool, synchronous_commit text, full_page_writes bool, autovacuum bool, standby bool
-- only: pg, because SQLite has no server
SELECT current_setting('server_version'), pg_database_size(current_database()),
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('max_connections')::int, current_setting('fsync')::bool,
       current_setting('synchronous_commit'), current_setting('full_page_writes')::bool,
       current_setting('autovacuum')::bool AND current_setting('track_counts')::bool,
       pg_is_in_recovery();

-- name: examine_sessions ()
-- returns: pid int, application text, username text, state text, age bigint, query_age bigint
-- only: pg, as examine_server
-- The session that holds back the clean-up the longest: dead rows that it might see stay in the way
-- of every claim. The text of its query is left out: it may hold secrets.
SELECT pid, application_name, coalesce(usename::text, ''), coalesce(state, ''),
       (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint,
       (extract(epoch FROM clock_timestamp() - query_start) * 1000000)::bigint
  FROM pg_catalog.pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
   AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL OR state LIKE 'idle in transaction%')
   AND backend_type <> 'autovacuum worker'
 ORDER BY xact_start LIMIT 1;

-- name: examine_prepared ()
-- returns: gid text, owner text, age bigint, number bigint
-- only: pg, as examine_server
SELECT gid, owner::text, (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint,
       count(*) OVER ()
  FROM pg_catalog.pg_prepared_xacts
 WHERE database = current_database()
 ORDER BY prepared LIMIT 1;

-- name: examine_table ()
-- returns: name text, living bigint, dead bigint, bytes bigint, vacuum_age bigint?, autovacuum bool
-- only: pg, because SQLite has no dead rows
SELECT s.relid::regclass::text, s.n_live_tup, s.n_dead_tup, pg_relation_size(s.relid),
       (extract(epoch FROM clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))
        * 1000000)::bigint,
       coalesce('autovacuum_enabled=false' <> ALL (c.reloptions), true)
  FROM pg_catalog.pg_stat_all_tables s
  JOIN pg_catalog.pg_class c ON c.oid = s.relid
 WHERE s.relid = 'weft.live'::regclass;
