-- The twin of 0023-result-size.pg.sql.
DROP VIEW snapshot;
CREATE VIEW snapshot AS
SELECT e.num, e.id, e.created, e.queue, e.content_type, e.tags, e.key,
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
       p.percent, p.note, f.id AS flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       length(o.result) AS result_size
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN node n ON n.num = e.num
  LEFT JOIN flow f ON f.num = n.flow;
