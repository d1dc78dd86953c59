-- concurrently
-- Lists of the delayed executions of a lane. The predicate is written so that a statement can name this index
-- and not live_timer, which holds the same rows of all namespaces.
CREATE INDEX CONCURRENTLY IF NOT EXISTS live_delayed ON weft.live (lane, id) WHERE state BETWEEN @delayed AND @delayed;
