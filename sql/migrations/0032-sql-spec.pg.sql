-- weft_submit_spec(): submission from SQL with a spec as JSON, with the fields of POST /v1/executions, gate, budgets
-- and cost among them. A parameter more of weft_submit() would be another function: the old one had to be dropped,
-- with the rights that were granted on it, and could not be where a function of an application depends on it. A
-- field more of the spec changes nothing but the body. What weft_submit() takes goes through it.
--
-- inbox.limits holds gate, budgets and cost as JSON. A binary that does not know the column would take the row in
-- without them, so the first such row raises schema.oldest_binary.
--
-- Who may call weft_submit() may call weft_submit_spec().
ALTER TABLE weft.inbox ADD COLUMN limits text;

CREATE FUNCTION weft.weft_submit_spec(spec json, namespace text DEFAULT 'default')
RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    submitted uuid;
    refusal text;
BEGIN
    IF json_typeof($1) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'weft_submit_spec: the spec is not a JSON object',
            HINT = 'pass what POST /v1/executions takes, for example {"kind":"greet"}; nothing was submitted';
    END IF;
    SELECT CASE WHEN f.field IS NULL THEN format('there is no field %s', left(e.key, 64))
                WHEN e.times > 1 THEN format('%s is there %s times', f.field, e.times)
                ELSE format('%s must be %s', f.field, f.say) END
      INTO refusal
      FROM (SELECT x.key, json_typeof(x.value) AS type, x.value #>> '{}' AS text, count(*) OVER (PARTITION BY x.key) AS times
              FROM json_each($1) x) e
      LEFT JOIN (VALUES ('kind', 'a text', 'string', NULL), ('payload', 'JSON', NULL, NULL),
                        ('payload_base64', 'a text', 'string', NULL), ('content_type', 'a text', 'string', NULL),
                        ('lane', 'a text', 'string', NULL), ('key', 'a text', 'string', NULL),
                        ('priority', 'a whole number', 'number', '^-?\d{1,9}$'),
                        ('delay_ms', 'a whole number', 'number', '^-?\d{1,18}$'),
                        ('run_at', 'a time such as 2026-12-01T06:00:00Z', 'string', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'),
                        ('deadline_at', 'a time such as 2026-12-01T06:00:00Z', 'string', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'),
                        ('capabilities', 'a list of texts', 'array', NULL), ('tenant', 'a text', 'string', NULL),
                        ('tags', 'an object', 'object', NULL), ('policy', 'an object', 'object', NULL),
                        ('gate', 'a text', 'string', NULL), ('budgets', 'a list of texts', 'array', NULL),
                        ('cost', 'an object', 'object', NULL)) AS f(field, say, type, form) ON f.field = e.key
     WHERE f.field IS NULL OR e.times > 1
        OR e.type <> 'null' AND f.type IS NOT NULL AND (e.type <> f.type OR e.text !~ f.form)
     LIMIT 1;
    IF refusal IS NULL AND $1 -> 'payload' IS NOT NULL AND $1 ->> 'payload_base64' IS NOT NULL THEN
        refusal := 'payload and payload_base64 exclude each other';
    ELSIF refusal IS NULL AND ($1 ->> 'capabilities' IS NOT NULL OR $1 ->> 'budgets' IS NOT NULL) THEN
        SELECT format('%s must be a list of texts', l.field) INTO refusal
          FROM (VALUES ('capabilities'), ('budgets')) AS l(field),
               LATERAL json_array_elements(CASE WHEN $1 ->> l.field IS NOT NULL THEN $1 -> l.field END) v
         WHERE json_typeof(v) <> 'string' LIMIT 1;
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'weft_submit_spec: ' || refusal,
            HINT = 'nothing was submitted';
    END IF;
    SELECT format('%s has %s %s, at most %s are allowed', f.field, f.size, f.unit, f.most)
      INTO refusal
      FROM (VALUES ('gate', octet_length($1 ->> 'gate'), 128, 'bytes'),
                   ('budgets', json_array_length(CASE WHEN $1 ->> 'budgets' IS NOT NULL THEN $1 -> 'budgets' END), 8, 'names'),
                   ('budgets', octet_length($1 ->> 'budgets'), 8192, 'bytes'),
                   ('cost', octet_length($1 ->> 'cost'), 8192, 'bytes')) AS f(field, size, most, unit)
     WHERE f.size > f.most LIMIT 1;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded', MESSAGE = 'weft_submit_spec: ' || refusal,
            HINT = 'nothing was submitted';
    END IF;
    submitted := weft.weft_submit(
        $1 ->> 'kind', CASE WHEN $1 ->> 'payload_base64' IS NULL THEN $1 -> 'payload' END,
        coalesce($1 ->> 'lane', 'default'), $1 ->> 'key', coalesce(($1 ->> 'priority')::int, 0),
        coalesce(($1 ->> 'delay_ms')::bigint, 0), ($1 ->> 'run_at')::timestamptz, ($1 ->> 'deadline_at')::timestamptz,
        CASE WHEN $1 ->> 'capabilities' IS NOT NULL THEN ARRAY(SELECT json_array_elements_text($1 -> 'capabilities')) END,
        $1 ->> 'tenant', nullif(($1 -> 'tags')::jsonb, 'null'), nullif(($1 -> 'policy')::jsonb, 'null'), $2,
        decode($1 ->> 'payload_base64', 'base64'), $1 ->> 'content_type');
    IF coalesce($1 ->> 'gate', $1 ->> 'budgets', $1 ->> 'cost') IS NOT NULL THEN
        UPDATE weft.schema SET oldest_binary = 32 WHERE oldest_binary < 32;
        UPDATE weft.inbox
           SET limits = json_build_object('gate', $1 -> 'gate', 'budgets', $1 -> 'budgets', 'cost', $1 -> 'cost')::text
         WHERE id = submitted;
    END IF;
    RETURN submitted;
END
$function$;

REVOKE ALL ON FUNCTION weft.weft_submit_spec FROM PUBLIC;
DO $do$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT a.grantee, a.is_grantable FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
                WHERE p.oid = 'weft.weft_submit'::regproc AND a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', 'weft.weft_submit_spec'::regproc,
                       CASE WHEN one.grantee = 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END,
                       CASE WHEN one.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
END
$do$;

CREATE OR REPLACE FUNCTION weft.grant_submit(role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', btrim(split_part('weft.inbox', '.', 1), '"'), role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', 'weft.weft_submit'::regproc, role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', 'weft.weft_submit_spec'::regproc, role);
END
$function$;
