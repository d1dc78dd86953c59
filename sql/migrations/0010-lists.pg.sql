-- Lists touch rows of their own namespace alone.
--
-- A span says that one transaction submitted executions of a namespace with ids from `first` to `last`, all
-- of one millisecond; `count` is how many. Lists walk the spans of a namespace, newest first, and the rows
-- of each by their ids. Between these ids lies at most what all others submitted in the same millisecond.
-- An index of every execution by namespace would serve as well, but costs a bulk submission a tenth of its
-- pace; a span costs one row for each transaction.
--
-- A span is written by the transaction that submits, never changed, and removed when no execution is left
-- between its ends: an execution that is there is always in a span.
CREATE TABLE weft.span (
    namespace int NOT NULL,
    last      uuid NOT NULL,
    first     uuid NOT NULL,
    count     int NOT NULL,
    PRIMARY KEY (namespace, last)
);

INSERT INTO weft.span (namespace, last, first, count)
SELECT q.namespace, max(e.id::text COLLATE "C")::uuid, min(e.id::text COLLATE "C")::uuid, count(*)
  FROM weft.execution e JOIN weft.queue q ON q.id = e.queue
 GROUP BY q.namespace, substr(e.id::text, 1, 13);

-- A replica of the release before knows nothing of spans and may run beside this one while replicas are
-- upgraded one after the other. Executions with ids from these moments may therefore be in no span, and lists
-- walk all ids there, as they did before. The store of a new installation has no such row.
CREATE TABLE weft.unspanned (since bigint NOT NULL, until bigint NOT NULL);
INSERT INTO weft.unspanned (since, until)
SELECT s.now - 3600000000, s.now + 86400000000
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) s
 WHERE EXISTS (SELECT 1 FROM weft.name);

-- The living of a namespace are found through live_ready and live_lease, through live_delayed (0014), and
-- through this one.
CREATE INDEX flow_open ON weft.flow (namespace, id) WHERE finished IS NULL;
