-- Readers see how large the result is; PostgreSQL knows that without reading it.
CREATE OR REPLACE VIEW weft.snapshot AS
SELECT e.id, e.created, e.queue, e.content_type, e.tags, e.key,
       coalesce(l.state, o.state) AS state,
       coalesce(l.priority, o.priority) AS priority,
       coalesce(l.attempt, o.attempt) AS attempt,
       coalesce(l.epoch, o.epoch) AS epoch,
       coalesce(l.lost, o.lost) AS lost,
       coalesce(l.replays, o.replays) AS replays,
       coalesce(l.worker, o.worker) AS worker,
       coalesce(l.started, o.started) AS started,
       coalesce(l.claimed, o.claimed) AS claimed,
       coalesce(l.deadline, o.deadline) AS deadline,
       l.due, o.finished, o.ended, o.by, o.reason, o.error_class, o.error_message,
       p.percent, p.note, n.flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       octet_length(o.result)::bigint AS result_size
  FROM weft.execution e
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.outcome o ON o.id = e.id
  LEFT JOIN weft.progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN weft.node n ON n.id = e.id;
