-- Replicas and their heartbeats.

-- name: replica_put (id uuid, host text, pid bigint, version text, url text, started bigint, up_since bigint, seen bigint, settings text, scanners text)
-- A replica writes its own row alone, so no transaction waits here.
INSERT INTO weft.replica (id, host, pid, version, url, started, up_since, seen, settings, scanners)
VALUES (:id, :host, :pid, :version, :url, :started, :up_since, :seen, :settings, :scanners)
    ON CONFLICT (id) DO UPDATE SET up_since = excluded.up_since, seen = excluded.seen,
                                   url = excluded.url, settings = excluded.settings,
                                   scanners = excluded.scanners;

-- name: replica_remove (id uuid)
DELETE FROM weft.replica WHERE id = :id;

-- name: replicas ()
-- returns: id uuid, host text, pid bigint, version text, url text, started bigint, up_since bigint, seen bigint, settings text, scanners text
SELECT id, host, pid, version, url, started, up_since, seen, settings, scanners
  FROM weft.replica ORDER BY id DESC;
