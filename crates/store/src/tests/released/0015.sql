-- What a database of schema version 15 may hold beside that.
INSERT INTO events_kept_from (project_id, owner, seq) VALUES (1, 'ann', 1);
