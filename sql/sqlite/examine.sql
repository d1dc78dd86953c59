-- The twins of sql/pg/examine.sql.

-- name: examine_work (now bigint)
-- returns: ready bigint, oldest_ready bigint?, running bigint, expired bigint, oldest_expired bigint?
SELECT count(*) FILTER (WHERE state = @ready), min(ord) FILTER (WHERE state = @ready),
       count(*) FILTER (WHERE state = @running),
       count(*) FILTER (WHERE state = @running AND due <= :now),
       min(due) FILTER (WHERE state = @running AND due <= :now)
  FROM live;

-- name: examine_indexes ()
-- returns: name text, valid bool
-- Only indexes that can be dropped: the others belong to their tables.
SELECT name, 1 FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL;

-- name: examine_file ()
-- returns: file text?, journal_mode text, synchronous int, bytes bigint, free_bytes bigint
-- only: sqlite, because PostgreSQL looks after its own files
SELECT d.file, j.journal_mode, s.synchronous, c.page_count * p.page_size,
       f.freelist_count * p.page_size
  FROM pragma_database_list d, pragma_journal_mode j, pragma_synchronous s, pragma_page_count c,
       pragma_page_size p, pragma_freelist_count f
 WHERE d.name = 'main';

-- name: examine_integrity ()
-- returns: problem text
-- only: sqlite, as examine_file
-- Reads the whole file.
SELECT quick_check FROM pragma_quick_check(10);
