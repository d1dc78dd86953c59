-- Files of batches: see 0036-files and src/engine/batch. A row of `file` is changed by its upload, by a delete and by
-- the scanner that expires it; the row is locked by the statement itself, and no transaction that holds one waits for
-- another lock.

-- fragment: file_shown (f)
-- Files that readers see. A file is gone when its time has come, whether the scanner has run or not.
@f.sealed AND @f.deleted IS NULL AND (@f.expires IS NULL OR @f.expires > :now)

-- name: file_add (now bigint, id uuid, namespace int, filename text)
-- A file that is being uploaded.
INSERT INTO weft.file (id, namespace, filename, purpose, sealed, bytes, requests, flaws, flaw_count, created, touched)
VALUES (:id, :namespace, :filename, '', false, 0, 0, '', 0, :now, :now);

-- name: file_chunk_add (file uuid, at bigint, line bigint, data bytea)
INSERT INTO weft.file_chunk (file, at, line, data) VALUES (:file, :at, :line, :data);

-- name: file_touch (now bigint, file uuid, bytes bigint)
-- returns: id uuid
-- The upload goes on. No row: it was given up because no chunk came for too long.
UPDATE weft.file SET touched = :now, bytes = :bytes WHERE id = :file AND NOT sealed AND deleted IS NULL RETURNING id;

-- name: file_seal (file uuid, purpose text, requests bigint, flaws text, flaw_count bigint, expires bigint?)
-- returns: id uuid
UPDATE weft.file SET sealed = true, purpose = :purpose, requests = :requests, flaws = :flaws, flaw_count = :flaw_count,
       expires = :expires
 WHERE id = :file AND NOT sealed AND deleted IS NULL RETURNING id;

-- name: file_read (now bigint, namespace int, id uuid)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM weft.file f
 WHERE f.namespace = :namespace AND f.id = :id AND @{file_shown f};

-- name: files_down (now bigint, namespace int, after uuid, purpose text, most int)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
-- Newest first, behind `after`; purpose '': any.
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM weft.file f
 WHERE f.namespace = :namespace AND f.id < :after AND @{file_shown f}
   AND (:purpose = '' OR f.purpose = :purpose)
 ORDER BY f.namespace DESC, f.id DESC LIMIT :most;

-- name: files_up (now bigint, namespace int, after uuid, purpose text, most int)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
-- Oldest first, behind `after`; purpose '': any.
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM weft.file f
 WHERE f.namespace = :namespace AND f.id > :after AND @{file_shown f}
   AND (:purpose = '' OR f.purpose = :purpose)
 ORDER BY f.namespace ASC, f.id ASC LIMIT :most;

-- name: file_bytes (file uuid, at bigint)
-- returns: at bigint, line bigint, data bytea
-- The chunk in which a byte is.
SELECT c.at, c.line, c.data FROM weft.file_chunk c WHERE c.file = :file AND c.at <= :at ORDER BY c.at DESC LIMIT 1;

-- name: file_remove (now bigint, namespace int, id uuid)
-- returns: id uuid
UPDATE weft.file AS f SET deleted = :now
 WHERE f.namespace = :namespace AND f.id = :id AND @{file_shown f} RETURNING id;

-- name: file_give_up (now bigint, id uuid)
-- An upload that failed.
UPDATE weft.file SET deleted = :now WHERE id = :id AND NOT sealed AND deleted IS NULL;

-- name: files_expire (now bigint, before bigint, batch int, ns int)
-- returns: id uuid
-- Files whose time has come, and uploads that no chunk came for since `before`. Skipped: rows that are being deleted.
WITH due AS MATERIALIZED (
    SELECT x.id FROM (
        (SELECT f.id FROM weft.file f
          WHERE f.expires IS NOT NULL AND f.deleted IS NULL AND f.expires <= :now AND (:ns = 0 OR f.namespace = :ns)
          ORDER BY f.expires LIMIT :batch)
        UNION ALL
        (SELECT f.id FROM weft.file f
          WHERE NOT f.sealed AND f.deleted IS NULL AND f.touched <= :before AND (:ns = 0 OR f.namespace = :ns)
          ORDER BY f.touched LIMIT :batch)) x
), locked AS MATERIALIZED (
    SELECT f.id FROM weft.file f
     WHERE f.id = ANY(ARRAY(SELECT d.id FROM due d)) AND f.deleted IS NULL
       AND (f.expires <= :now OR (NOT f.sealed AND f.touched <= :before))
     ORDER BY f.id LIMIT :batch FOR UPDATE SKIP LOCKED
)
UPDATE weft.file u SET deleted = :now FROM locked l WHERE u.id BETWEEN l.id AND l.id RETURNING u.id;

-- name: files_removing (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT f.id FROM weft.file f WHERE f.deleted IS NOT NULL AND @{of_flow f} ORDER BY f.deleted, f.id LIMIT :batch;

-- name: purge_chunks (file uuid[], batch int)
-- returns: removed bigint
-- Chunks of files that were deleted, file after file. SKIP LOCKED on the chunks and nothing on the file: replicas share
-- one large file. An upload adds no chunk to a file that was deleted: it locks the row first (file_touch).
WITH taken AS MATERIALIZED (
    SELECT m.file, m.at
      FROM unnest(:file) AS i(file)
     CROSS JOIN LATERAL (SELECT f.id FROM weft.file f WHERE f.id = i.file AND f.deleted IS NOT NULL OFFSET 0) x
     CROSS JOIN LATERAL (SELECT c.file, c.at FROM weft.file_chunk c WHERE c.file = x.id
                          ORDER BY c.at LIMIT :batch FOR UPDATE SKIP LOCKED) m
     LIMIT :batch
), gone AS (
    DELETE FROM weft.file_chunk c USING taken t WHERE c.file BETWEEN t.file AND t.file AND c.at BETWEEN t.at AND t.at
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: purge_files (file uuid[])
-- returns: id uuid
-- The files themselves, of these, that have nothing left. A chunk that another transaction is about to remove still
-- counts: then the file goes with a later batch.
WITH m AS MATERIALIZED (
    SELECT f.id FROM unnest(:file) AS i(file)
     CROSS JOIN LATERAL (SELECT d.id FROM weft.file d
                          WHERE d.id = i.file AND d.deleted IS NOT NULL
                            AND NOT EXISTS (SELECT 1 FROM weft.file_chunk c WHERE c.file = d.id OFFSET 0)
                            FOR UPDATE SKIP LOCKED) f
)
DELETE FROM weft.file d USING m WHERE d.id BETWEEN m.id AND m.id RETURNING d.id;

-- name: purge_chunks_left (file uuid[], most int)
-- returns: count bigint
-- How many chunks are there all the same, up to most: others hold them. Locks nothing.
SELECT count(*)
  FROM (SELECT 1 FROM unnest(:file) AS i(file)
         CROSS JOIN LATERAL (SELECT 1 FROM weft.file_chunk c WHERE c.file = i.file LIMIT :most) d
         LIMIT :most) x;
