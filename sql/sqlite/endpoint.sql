-- The twins of sql/pg/endpoint.sql. The write lock of the file stands for the lock of endpoint_version.

-- fragment: endpoint_columns (e)
@e.namespace, @e.name, @e.version, @e.url, @e.secret, @e.auth, @e.headers, @e.retry, @e.idempotency_header, @e.flags,
@e.retry_after_max_ms, @e.max_in_flight, @e.connect_ms, @e.first_byte_ms, @e.idle_ms, @e.total_ms, @e.response_max

-- name: endpoints_changed ()
-- returns: version bigint
-- In a transaction that changes an endpoint, first.
UPDATE endpoint_version SET version = version + 1 RETURNING version;

-- name: endpoints_counted (namespace int, name text)
-- returns: endpoints bigint
-- How many others there are.
SELECT count(*) FROM endpoint WHERE namespace = :namespace AND name <> :name;

-- name: endpoint_put (namespace int, name text, url text, secret text?, auth text?, headers text, retry text, idempotency_header text?, flags int, retry_after_max_ms bigint, max_in_flight bigint, connect_ms bigint, first_byte_ms bigint, idle_ms bigint, total_ms bigint, response_max bigint, version bigint)
INSERT INTO endpoint (namespace, name, url, secret, auth, headers, retry, idempotency_header, flags,
                      retry_after_max_ms, max_in_flight, connect_ms, first_byte_ms, idle_ms, total_ms,
                      response_max, version)
VALUES (:namespace, :name, :url, :secret, :auth, :headers, :retry, :idempotency_header, :flags, :retry_after_max_ms,
        :max_in_flight, :connect_ms, :first_byte_ms, :idle_ms, :total_ms, :response_max, :version)
    ON CONFLICT (namespace, name) DO UPDATE
   SET url = excluded.url, secret = excluded.secret, auth = excluded.auth, headers = excluded.headers,
       retry = excluded.retry, idempotency_header = excluded.idempotency_header, flags = excluded.flags,
       retry_after_max_ms = excluded.retry_after_max_ms, max_in_flight = excluded.max_in_flight,
       connect_ms = excluded.connect_ms, first_byte_ms = excluded.first_byte_ms, idle_ms = excluded.idle_ms,
       total_ms = excluded.total_ms, response_max = excluded.response_max, version = excluded.version;

-- name: endpoint_remove (namespace int, name text)
-- returns: namespace int, name text, version bigint, url text, secret text?, auth text?, headers text, retry text, idempotency_header text?, flags int, retry_after_max_ms bigint, max_in_flight bigint, connect_ms bigint, first_byte_ms bigint, idle_ms bigint, total_ms bigint, response_max bigint
DELETE FROM endpoint WHERE namespace = :namespace AND name = :name
RETURNING @{endpoint_columns endpoint};

-- name: endpoint_list (namespace int, own text?, after text, most int)
-- returns: namespace int, name text, version bigint, url text, secret text?, auth text?, headers text, retry text, idempotency_header text?, flags int, retry_after_max_ms bigint, max_in_flight bigint, connect_ms bigint, first_byte_ms bigint, idle_ms bigint, total_ms bigint, response_max bigint
SELECT @{endpoint_columns e}
  FROM endpoint e
 WHERE e.namespace = :namespace AND e.name > :after AND e.name BETWEEN coalesce(:own, '') AND coalesce(:own, '~')
 ORDER BY e.name LIMIT :most;

-- name: endpoints_version ()
-- returns: version bigint
-- Read before the endpoints: what changed in between is read again when the poll sees the newer number.
SELECT version FROM endpoint_version;

-- name: endpoints_all ()
-- returns: namespace int, name text, version bigint, url text, secret text?, auth text?, headers text, retry text, idempotency_header text?, flags int, retry_after_max_ms bigint, max_in_flight bigint, connect_ms bigint, first_byte_ms bigint, idle_ms bigint, total_ms bigint, response_max bigint, space text
-- The endpoints of all namespaces, with their names.
SELECT @{endpoint_columns e}, n.text
  FROM endpoint e JOIN name n ON n.id = e.namespace
 ORDER BY n.text, e.name;
