-- The twin of 0026-marked.pg.sql.
ALTER TABLE attempt ADD COLUMN marked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE waitpoint ADD COLUMN marked INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER attempt_has;
DROP TRIGGER waitpoint_has;
CREATE TRIGGER attempt_has AFTER INSERT ON attempt WHEN NOT NEW.marked
BEGIN
    UPDATE live SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
    UPDATE outcome SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
END;
CREATE TRIGGER waitpoint_has AFTER INSERT ON waitpoint WHEN NOT NEW.marked
BEGIN
    UPDATE live SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
    UPDATE outcome SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
END;
