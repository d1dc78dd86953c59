-- Replays of members that wait for their upstreams. In a cancelled flow no join begins anything, but a member
-- that was replayed after the cancel is to begin when its join holds. `flow.cancels` counts the cancels of a
-- flow; `node.again` is what that was when the member was replayed and had to wait, -1: it does not wait so. A
-- cancel that comes after the replay makes them differ, and so takes in the member as all others.
--
-- A binary that does not know these columns cancels such a member, as it always did.
ALTER TABLE weft.flow ADD COLUMN cancels int NOT NULL DEFAULT 0;
ALTER TABLE weft.node ADD COLUMN again int NOT NULL DEFAULT -1;
