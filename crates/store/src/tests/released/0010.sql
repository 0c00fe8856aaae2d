-- What a database of schema version 10 may hold beside that.
INSERT INTO archived_counts (project_id, kind, phase, n)
    SELECT project_id, kind, phase, 1 FROM workloads WHERE archived = 1;
