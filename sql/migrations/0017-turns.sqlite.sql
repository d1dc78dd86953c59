-- The twin of 0017-turns.pg.sql.
DROP INDEX live_delayed;
CREATE INDEX live_delayed ON live (lane, due) WHERE state = @delayed;
CREATE INDEX live_deadline_lane ON live (lane, deadline) WHERE deadline IS NOT NULL;
CREATE INDEX live_attempt_lane ON live (lane, attempt_deadline) WHERE attempt_deadline IS NOT NULL;
