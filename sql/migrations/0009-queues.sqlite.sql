-- The twin of 0009-queues.pg.sql; see there for what it is for.

CREATE INDEX queue_lane ON queue (lane, id);
