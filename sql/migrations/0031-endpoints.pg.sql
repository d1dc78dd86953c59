-- Endpoints: the servers that weft calls itself (src/engine/http). An older binary knows no such calls and
-- makes none, so it may use the store beside newer ones.
--
--   version             of endpoint_version, when it was put: another one with each put, also behind a removal
--   secret              the name of a secret, never the secret
--   headers             a JSON object of texts
--   retry               a JSON list of statuses and classes
--   flags               1: private addresses, 2: redirects, 4: idempotent
CREATE TABLE weft.endpoint (
    namespace          int      NOT NULL,
    name               text COLLATE "C" NOT NULL,
    version            bigint   NOT NULL,
    url                text     NOT NULL,
    secret             text,
    auth               text,
    headers            text     NOT NULL,
    retry              text     NOT NULL,
    idempotency_header text,
    flags              int      NOT NULL,
    retry_after_max_ms bigint   NOT NULL,
    max_in_flight      bigint   NOT NULL,
    connect_ms         bigint   NOT NULL,
    first_byte_ms      bigint   NOT NULL,
    idle_ms            bigint   NOT NULL,
    total_ms           bigint   NOT NULL,
    response_max       bigint   NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Counts the changes of endpoints. Its row is locked from the change to the commit, so the number grows in the order of
-- commits: a process that has read the endpoints with a number knows that they are still the same.
CREATE TABLE weft.endpoint_version (
    one     int    PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version bigint NOT NULL
);
INSERT INTO weft.endpoint_version (version) VALUES (1);

-- The part of the poll: the number that changes with the endpoints.
CREATE FUNCTION weft.poll_endpoints(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
AS $function$
    SELECT 12, version, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text FROM weft.endpoint_version
$function$;
