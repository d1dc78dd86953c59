-- A set of bits, `has`, in the rows of executions: which tables beside them may have rows about the execution
-- (src/core/tables.def: 1 progress, 2 attempt). Removal and checks look only where a bit is set.
--
-- A bit that is not set is a promise: there is no row. The default keeps it whatever binary wrote the row: all
-- bits are set in rows that are there already, and in rows of binaries that do not know the column. Newer
-- binaries insert 0, and the bits are set by the triggers below, in the transaction that writes the first row
-- beside, so also when an older binary writes it. An older binary that ends or replays an execution writes its
-- new row with the default. So older binaries do no harm, and the oldest one that may use the store stays.
--
-- The default is a constant: no table is rewritten.
ALTER TABLE weft.live ADD COLUMN has smallint NOT NULL DEFAULT -1;
ALTER TABLE weft.outcome ADD COLUMN has smallint NOT NULL DEFAULT -1;

-- Sets a bit, the argument of the trigger, in the rows of the executions about which rows were inserted. weft
-- inserts such rows in transactions that hold the lock of the living row, so this waits for no other
-- transaction; there is an outcome only when a person repairs a store by hand. As a rule the bit is set
-- already (live_put), which one probe of the key finds: OFFSET 0, the joins by BETWEEN and the SET clause keep
-- the plans at that, see sql/pg/change.sql.
CREATE FUNCTION weft.set_has() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    bit smallint := TG_ARGV[0];
BEGIN
    IF EXISTS (SELECT 1 FROM fresh f
                WHERE NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = f.id AND l.has & bit <> 0 OFFSET 0)) THEN
        UPDATE weft.live l SET has = l.has | bit
          FROM fresh f WHERE l.id BETWEEN f.id AND f.id AND l.has & bit = 0;
        UPDATE weft.outcome o SET has = o.has | bit
          FROM fresh f WHERE o.id BETWEEN f.id AND f.id AND o.has & bit = 0;
    END IF;
    RETURN NULL;
END
$function$;
CREATE TRIGGER progress_has AFTER INSERT ON weft.progress
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(1);
CREATE TRIGGER attempt_has AFTER INSERT ON weft.attempt
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(2);
