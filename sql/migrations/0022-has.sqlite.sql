-- The twin of 0022-has.pg.sql.
ALTER TABLE live ADD COLUMN has INTEGER NOT NULL DEFAULT -1;
ALTER TABLE outcome ADD COLUMN has INTEGER NOT NULL DEFAULT -1;
CREATE TRIGGER progress_has AFTER INSERT ON progress
BEGIN
    UPDATE live SET has = has | 1
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 1 = 0;
    UPDATE outcome SET has = has | 1
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 1 = 0;
END;
CREATE TRIGGER attempt_has AFTER INSERT ON attempt
BEGIN
    UPDATE live SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
    UPDATE outcome SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
END;
