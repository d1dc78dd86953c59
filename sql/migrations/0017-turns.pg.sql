-- Passes in turns (sql/pg/turns.sql): what is due, lane by lane. live_delayed held (lane, id); with the time
-- between them it serves passes and lists. The other two hold an expression, so that a statement names them
-- and not live_deadline and live_attempt_deadline, which go by time over all lanes. Only executions with a
-- deadline, or with an attempt that may time out, have rows in them.
DROP INDEX weft.live_delayed;
CREATE INDEX live_delayed ON weft.live (lane, due, id) WHERE state BETWEEN @delayed AND @delayed;
CREATE INDEX live_deadline_lane ON weft.live (lane, (deadline + 0)) WHERE deadline + 0 >= 0;
CREATE INDEX live_attempt_lane ON weft.live (lane, (attempt_deadline + 0)) WHERE attempt_deadline + 0 >= 0;
