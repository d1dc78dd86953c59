-- The twin of 0011-replays.pg.sql; see there for what it is for.
ALTER TABLE flow ADD COLUMN cancels INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN again INTEGER NOT NULL DEFAULT -1;
