-- What a database of schema version 8 may hold beside that.
INSERT INTO meta (key, value) VALUES ('events_from', '1');
