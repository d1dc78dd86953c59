-- weft_submit() refuses a field that is too large at once, so that the application gets the error in its own
-- transaction. Until now intake made a failed execution of it, of which the application learned nothing, and
-- the field was stored first, however large. The limits are those of every other submission. What is wrong in
-- another way is still found by intake.
CREATE OR REPLACE FUNCTION weft.weft_submit(
    kind text, payload json DEFAULT NULL, lane text DEFAULT 'default',
    key text DEFAULT NULL, priority int DEFAULT 0, delay_ms bigint DEFAULT 0,
    run_at timestamptz DEFAULT NULL, deadline_at timestamptz DEFAULT NULL,
    capabilities text[] DEFAULT NULL, tenant text DEFAULT NULL, tags jsonb DEFAULT NULL,
    policy jsonb DEFAULT NULL, namespace text DEFAULT 'default',
    payload_bytes bytea DEFAULT NULL, content_type text DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    submitted uuid;
    refusal text;
BEGIN
    -- The first look takes next to no time. The second is for what has parts, and finds the words.
    IF $9 IS NOT NULL OR $11 IS NOT NULL OR $12 IS NOT NULL
       OR greatest(octet_length($1), octet_length($3), octet_length($10), octet_length($13),
                   octet_length($15)) > 128
       OR octet_length($4) > 512 OR greatest(octet_length($2::text), octet_length($14)) > 1048576
    THEN
        SELECT format('%s has %s %s, at most %s are allowed', f.field, f.size, f.unit, f.most)
          INTO refusal
          FROM (VALUES ('kind', octet_length($1), 128, 'bytes'),
                       ('payload', greatest(octet_length($2::text), octet_length($14)), 1048576, 'bytes'),
                       ('lane', octet_length($3), 128, 'bytes'),
                       ('key', octet_length($4), 512, 'bytes'),
                       ('capabilities', cardinality($9), 256, 'tokens'),
                       ('capabilities', octet_length(array_to_string($9, ',')), 2048, 'bytes'),
                       ('tenant', octet_length($10), 128, 'bytes'),
                       ('policy', octet_length($12::text), 262144, 'bytes'),
                       ('namespace', octet_length($13), 128, 'bytes'),
                       ('content_type', octet_length($15), 128, 'bytes'),
                       ('tags', octet_length($11::text), 262144, 'bytes')) AS f(field, size, most, unit)
         WHERE f.size > f.most LIMIT 1;
        IF refusal IS NULL AND jsonb_typeof($11) = 'object' THEN
            SELECT CASE WHEN count(*) > 32 THEN format('there are %s tags, at most 32 are allowed', count(*))
                        WHEN max(octet_length(t.key)) > 64 THEN
                            format('the key of a tag has %s bytes, at most 64 are allowed', max(octet_length(t.key)))
                        WHEN max(octet_length(t.value)) > 256 THEN
                            format('the value of a tag has %s bytes, at most 256 are allowed', max(octet_length(t.value)))
                   END
              INTO refusal
              FROM jsonb_each_text($11) t;
        END IF;
        IF refusal IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded', MESSAGE = 'weft_submit: ' || refusal,
                HINT = 'keep large data in a table or a file and submit where it is; nothing was submitted';
        END IF;
    END IF;
    INSERT INTO weft.inbox
    SELECT encode(
               substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3, 6)
               || set_byte(set_byte(set_byte(substr(r.bytes, 10, 7) || substr(r.bytes, 17, 3), 0, 112 | (p.partition >> 4)),
                                    1, ((p.partition & 15) << 4) | (get_byte(r.bytes, 9) & 15)),
                           2, 128 | (get_byte(r.bytes, 10) & 63)), 'hex')::uuid,
           coalesce($13, 'default'), $3, $1,
           coalesce($14, convert_to($2::text, 'UTF8')), $15, $5, $6,
           CASE WHEN $7 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $7) * 1000000, -1), 253402300800000000)::bigint END,
           CASE WHEN $8 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $8) * 1000000, -1), 253402300800000000)::bigint END,
           to_json($9)::text, $10, $11::text, $4, $12::text
      FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) AS bytes) r,
   LATERAL (SELECT CASE WHEN $4 IS NULL THEN get_byte(r.bytes, 25)
                        ELSE get_byte(sha256(convert_to(coalesce($13, 'default'), 'UTF8')
                                             || '\x00'::bytea || convert_to($4, 'UTF8')), 0)
                   END AS partition) p
    RETURNING id INTO submitted;
    RETURN submitted;
END
$function$;
