-- The twin of 0014-live-delayed.pg.sql.
CREATE INDEX live_delayed ON live (lane) WHERE state = @delayed;
