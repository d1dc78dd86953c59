-- The twins of sql/pg/fragments.sql.

-- fragment: live_columns ()
-- Of `live` l and its `execution` e.
e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane, l.policy,
l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority, l.state, l.has,
l.gate

-- fragment: execution_columns (s)
@s.id, @s.created, @s.queue, @s.content_type, @s.tags, @s.key, @s.state, @s.priority, @s.attempt,
@s.epoch, @s.lost, @s.replays, @s.worker, @s.started, @s.claimed, @s.deadline, @s.due, @s.finished,
@s.ended, @s.by, @s.reason, @s.error_class, @s.error_message, @s.percent, @s.note, @s.flow, @s.node,
@s.policy, @s.forgiven, @s.result_size, @s.suspended, @s.escalated, @s.gate

-- fragment: of_namespace (queue)
(:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = @queue) = :ns)

-- fragment: of_lane (lane)
(:ns = 0 OR (SELECT n.namespace FROM name n WHERE n.id = @lane) = :ns)

-- fragment: of_partition (id)
-- weft_partition() is a function of the driver.
(:last - :first = @WEFT_PARTITION_LAST OR weft_partition(@id) BETWEEN :first AND :last)

-- fragment: of_partition_num (num)
-- The same for the number of an execution.
@{of_partition (SELECT e.id FROM execution e WHERE e.num = @num)}

-- fragment: of_flow (f)
(:ns = 0 OR @f.namespace = :ns) AND @{of_partition @f.id}

-- fragment: lanes_with_leases ()
lanes(lane) AS (
    SELECT min(lane) FROM live WHERE state = @running
    UNION ALL
    SELECT (SELECT min(n.lane) FROM live n WHERE n.state = @running AND n.lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
)

-- fragment: ready_queues ()
hop(queue) AS (
    SELECT min(queue) FROM live WHERE state = @ready AND queue > :after
    UNION ALL
    SELECT (SELECT min(l.queue) FROM live l WHERE l.state = @ready AND l.queue > hop.queue)
      FROM hop WHERE hop.queue IS NOT NULL
     LIMIT :most
)

-- fragment: several_namespaces ()
-- No row need have a span while there is one namespace: see 0019-one-namespace.
EXISTS (SELECT 1 FROM name WHERE sort = @WEFT_NAME_NAMESPACE LIMIT 1 OFFSET 1)

-- fragment: span_added ()
(namespace, last, first, count)
SELECT :span_namespace, :id, :span_first, :span_count
 WHERE :span_namespace IS NOT NULL AND @{several_namespaces}

-- fragment: times_out (s)
coalesce(@s.due, 9223372036854775807)

-- fragment: waitpoint_columns (w)
-- A waitpoint, with its execution.
@w.waitpoint, @w.id, @w.created, @w.expires, @w.closed, @w.epoch, @w.bound, @w.signals, @w.key, @w.replay, @w.name

-- fragment: ready_or_held (gate)
-- What becomes ready, unless it has a gate: then it waits for its admission, as in weft_state_step().
CASE WHEN @gate IS NULL THEN @ready ELSE @held END
