-- Submitting by SQL for an ordinary role, and at once: weft_submit() runs with the rights of the
-- schema's owner, and a commit that submitted something wakes the replicas.

-- As in 0001, but SECURITY DEFINER: a caller needs EXECUTE on this function and USAGE on the schema,
-- and no right on any table. Every name of weft's is qualified and the search path holds nothing
-- that a caller can write to before pg_catalog, so that a caller cannot bring functions or operators
-- of its own into a body that runs with the rights of another role. PL/pgSQL keeps the plan of the
-- INSERT for the session; in LANGUAGE sql it is made anew at each call, which takes longer than the
-- INSERT itself.
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
BEGIN
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

-- Wakes the replicas when a transaction that submitted something commits. A transaction that
-- notifies holds a lock of the whole cluster through its COMMIT, so transactions that notify commit
-- one after the other and share no write to the disk. To keep that away from the application, only
-- one transaction at a time notifies: the one that gets the advisory lock. The others are committing
-- at the same moment, and the replicas look a few times more within the next milliseconds.
--
-- It runs in the caller's session at COMMIT (a deferred trigger), so that the advisory lock is held
-- for the COMMIT alone and not for the rest of a long transaction.
--
-- The channel is the schema's name, which the driver puts before the dot, in quotes.
CREATE FUNCTION weft.wake_intake() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF pg_try_advisory_xact_lock(2003133044, TG_RELID::int) THEN
        PERFORM pg_notify(btrim(split_part('weft.inbox', '.', 1), '"'), 'inbox');
    END IF;
    RETURN NULL;
END
$function$;
REVOKE ALL ON FUNCTION weft.wake_intake() FROM PUBLIC;

-- An application that does not want the wake says SET "weft.notify" = off. (The name is written in
-- two parts because it is no name in the schema: the driver leaves it alone so.)
CREATE CONSTRAINT TRIGGER wake_intake AFTER INSERT ON weft.inbox
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (lower(coalesce(current_setting('weft' || '.notify', true), '')) NOT IN ('off', 'false', 'no', '0'))
EXECUTE FUNCTION weft.wake_intake();

-- Lets a role submit by SQL, and nothing else: `weft migrate --grant-submit ROLE`.
CREATE FUNCTION weft.grant_submit(role text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', btrim(split_part('weft.inbox', '.', 1), '"'), role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', 'weft.weft_submit'::regproc, role);
END
$function$;
REVOKE ALL ON FUNCTION weft.grant_submit(text) FROM PUBLIC;

-- Until now a role needed INSERT on the inbox to submit by SQL. Those that were given it keep what
-- they had; no other role may call the function.
REVOKE ALL ON FUNCTION weft.weft_submit FROM PUBLIC;
DO $body$
DECLARE
    holder record;
BEGIN
    FOR holder IN
        SELECT DISTINCT r.rolname
          FROM pg_catalog.pg_class c
         CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
          LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
         WHERE c.oid = 'weft.inbox'::regclass AND a.privilege_type = 'INSERT'
    LOOP
        IF holder.rolname IS NULL THEN -- it was granted to PUBLIC
            GRANT EXECUTE ON FUNCTION weft.weft_submit TO PUBLIC;
        ELSE
            PERFORM weft.grant_submit(holder.rolname);
        END IF;
    END LOOP;
END
$body$;
