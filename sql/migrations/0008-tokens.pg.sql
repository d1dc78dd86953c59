-- When a token was last used, and the secrets that it got by rotation.
--
-- A rotation adds a row with a secret of its own, which names its token in secret_of; the row of the
-- token stays, as what revocations and rotations lock, and its own secret expires with the grace.
-- So a rotation changes the highest id, by which the poll of every replica sees it, and a server
-- that does not know of rotations takes each secret for a token of its own.

ALTER TABLE weft.token ADD COLUMN secret_of int;

-- Written by upkeep, at most once a minute for each token and replica.
ALTER TABLE weft.token ADD COLUMN last_used bigint;
