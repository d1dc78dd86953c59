-- Lists of the delayed executions of a lane. The predicate is written so that a statement can name this index
-- and not live_timer, which holds the same rows of all namespaces. It is built in a transaction: `live` holds the work in hand alone,
-- and behind a pooler a session that only reads by default cannot build one outside of a transaction.
CREATE INDEX live_delayed ON weft.live (lane, id) WHERE state BETWEEN @delayed AND @delayed;
