-- Rows of the inbox that could not become an execution, not even a failed one, because an execution with
-- their id is there already. Each is removed from the inbox and noted here once, for a week.
CREATE TABLE weft.inbox_refused (
    id        uuid NOT NULL,
    at        bigint NOT NULL,
    namespace text NOT NULL, -- as the row had it, cut
    reason    text NOT NULL
);
CREATE INDEX inbox_refused_at ON weft.inbox_refused (at);
