-- The twins of sql/pg/file.sql.

-- fragment: file_shown (f)
@f.sealed AND @f.deleted IS NULL AND (@f.expires IS NULL OR @f.expires > :now)

-- name: file_add (now bigint, id uuid, namespace int, filename text)
-- A file that is being uploaded.
INSERT INTO file (id, namespace, filename, purpose, sealed, bytes, requests, flaws, flaw_count, created, touched)
VALUES (:id, :namespace, :filename, '', false, 0, 0, '', 0, :now, :now);

-- name: file_chunk_add (file uuid, at bigint, line bigint, data bytea)
INSERT INTO file_chunk (file, at, line, data) VALUES (:file, :at, :line, :data);

-- name: file_touch (now bigint, file uuid, bytes bigint)
-- returns: id uuid
-- The upload goes on. No row: it was given up because no chunk came for too long.
UPDATE file SET touched = :now, bytes = :bytes WHERE id = :file AND NOT sealed AND deleted IS NULL RETURNING id;

-- name: file_seal (file uuid, purpose text, requests bigint, flaws text, flaw_count bigint, expires bigint?)
-- returns: id uuid
UPDATE file SET sealed = true, purpose = :purpose, requests = :requests, flaws = :flaws, flaw_count = :flaw_count,
       expires = :expires
 WHERE id = :file AND NOT sealed AND deleted IS NULL RETURNING id;

-- name: file_read (now bigint, namespace int, id uuid)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM file f
 WHERE f.namespace = :namespace AND f.id = :id AND @{file_shown f};

-- name: files_down (now bigint, namespace int, after uuid, purpose text, most int)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
-- Newest first, behind `after`; purpose '': any.
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM file f
 WHERE f.namespace = :namespace AND f.id < :after AND @{file_shown f}
   AND (:purpose = '' OR f.purpose = :purpose)
 ORDER BY f.namespace DESC, f.id DESC LIMIT :most;

-- name: files_up (now bigint, namespace int, after uuid, purpose text, most int)
-- returns: id uuid, filename text, purpose text, bytes bigint, requests bigint, flaws text, flaw_count bigint, created bigint, expires bigint?
-- Oldest first, behind `after`; purpose '': any.
SELECT id, filename, purpose, bytes, requests, flaws, flaw_count, created, expires FROM file f
 WHERE f.namespace = :namespace AND f.id > :after AND @{file_shown f}
   AND (:purpose = '' OR f.purpose = :purpose)
 ORDER BY f.namespace ASC, f.id ASC LIMIT :most;

-- name: file_bytes (file uuid, at bigint)
-- returns: at bigint, line bigint, data bytea
-- The chunk in which a byte is.
SELECT c.at, c.line, c.data FROM file_chunk c WHERE c.file = :file AND c.at <= :at ORDER BY c.at DESC LIMIT 1;

-- name: file_remove (now bigint, namespace int, id uuid)
-- returns: id uuid
UPDATE file AS f SET deleted = :now
 WHERE f.namespace = :namespace AND f.id = :id AND @{file_shown f} RETURNING id;

-- name: file_give_up (now bigint, id uuid)
-- An upload that failed.
UPDATE file SET deleted = :now WHERE id = :id AND NOT sealed AND deleted IS NULL;

-- name: files_expire (now bigint, before bigint, batch int, ns int)
-- returns: id uuid
UPDATE file SET deleted = :now
 WHERE num IN (SELECT f.num FROM file f
                WHERE f.expires IS NOT NULL AND f.deleted IS NULL AND f.expires <= :now
                  AND (:ns = 0 OR f.namespace = :ns) ORDER BY f.expires LIMIT :batch)
    OR num IN (SELECT f.num FROM file f
                WHERE NOT f.sealed AND f.deleted IS NULL AND f.touched <= :before
                  AND (:ns = 0 OR f.namespace = :ns) ORDER BY f.touched LIMIT :batch)
RETURNING id;

-- name: files_removing (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT f.id FROM file f WHERE f.deleted IS NOT NULL AND @{of_flow f} ORDER BY f.deleted, f.id LIMIT :batch;

-- name: purge_chunks (file uuid[], batch int)
-- returns: removed bigint
DELETE FROM file_chunk
 WHERE num IN (SELECT c.num FROM input i CROSS JOIN file f ON f.id = i.file CROSS JOIN file_chunk c ON c.file = f.id
                WHERE f.deleted IS NOT NULL LIMIT :batch);
SELECT changes();

-- name: purge_files (file uuid[])
-- returns: id uuid
DELETE FROM file
 WHERE id IN (SELECT i.file FROM input i) AND deleted IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM file_chunk c WHERE c.file = file.id)
RETURNING id;

-- name: purge_chunks_left (file uuid[], most int)
-- returns: count bigint
SELECT count(*)
  FROM (SELECT 1 FROM input i CROSS JOIN file_chunk c ON c.file = i.file LIMIT :most);
