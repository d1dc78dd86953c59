-- Intake in turns: the rows of a namespace in the inbox, oldest first. A name in the inbox may have any length,
-- an entry of an index may not; a valid name has at most 128 characters.
CREATE INDEX inbox_namespace ON weft.inbox ((left(namespace, 128) COLLATE "C"), id);
