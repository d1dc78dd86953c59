-- Pieces that statements of several files share: tools/sql_text.py says how they are used.

-- fragment: live_columns (l)
-- All that a step of an execution needs of its living row: the columns of live_lock.
@l.id, @l.ord, @l.due, @l.attempt_deadline, @l.deadline, @l.started, @l.claimed, @l.queue, @l.lane,
@l.policy, @l.worker, @l.epoch, @l.attempt, @l.forgiven, @l.size, @l.lost, @l.replays, @l.priority, @l.state,
@l.has, @l.gate

-- fragment: execution_columns (s)
-- An execution as readers see it, from weft.snapshot.
@s.id, @s.created, @s.queue, @s.content_type, @s.tags, @s.key, @s.state, @s.priority, @s.attempt,
@s.epoch, @s.lost, @s.replays, @s.worker, @s.started, @s.claimed, @s.deadline, @s.due, @s.finished,
@s.ended, @s.by, @s.reason, @s.error_class, @s.error_message, @s.percent, @s.note, @s.flow, @s.node,
@s.policy, @s.forgiven, @s.result_size, @s.suspended, @s.escalated, @s.gate

-- fragment: of_namespace (queue)
-- Whether a queue is of the namespace that a pass is limited to, 0: to none. The namespace is read by a
-- scalar subquery, which, unlike EXISTS, the planner never turns into a read of all queues.
(:ns = 0 OR (SELECT q.namespace FROM weft.queue q WHERE q.id = @queue) = :ns)

-- fragment: of_lane (lane)
-- The same for a lane, which belongs to one namespace.
(:ns = 0 OR (SELECT n.namespace FROM weft.name n WHERE n.id = @lane) = :ns)

-- fragment: of_partition (id)
-- Whether an id is of the partitions that a pass is limited to.
(:last - :first = @WEFT_PARTITION_LAST OR weft.partition(@id) BETWEEN :first AND :last)

-- fragment: of_flow (f)
-- Both for a flow.
(:ns = 0 OR @f.namespace = :ns) AND @{of_partition @f.id}

-- fragment: live_or_outcome (column, id)
-- An execution is in one of the two tables. Each is probed by its key.
LEFT JOIN LATERAL (SELECT @column FROM weft.live WHERE id = @id OFFSET 0) l ON true
LEFT JOIN LATERAL (SELECT @column FROM weft.outcome WHERE id = @id OFFSET 0) o ON true

-- fragment: no_id ()
'00000000-0000-0000-0000-000000000000'

-- fragment: last_id ()
'ffffffff-ffff-ffff-ffff-ffffffffffff'

-- fragment: spans_added ()
-- The span_ columns are set in the last row of a span: see 0010-lists.
INSERT INTO weft.span (namespace, last, first, count)
SELECT span_namespace, id, span_first, span_count FROM item WHERE span_namespace IS NOT NULL

-- fragment: times_out (s)
-- When a suspension times out, as the index suspension_lane has it.
coalesce(@s.due, 9223372036854775807)

-- fragment: waitpoint_columns (w)
-- A waitpoint, with its execution.
@w.waitpoint, @w.id, @w.created, @w.expires, @w.closed, @w.epoch, @w.bound, @w.signals, @w.key, @w.replay, @w.name

-- fragment: ready_or_held (gate)
-- What becomes ready, unless it has a gate: then it waits for its admission, as in weft_state_step().
CASE WHEN @gate IS NULL THEN @ready ELSE @held END
