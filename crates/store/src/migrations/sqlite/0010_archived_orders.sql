-- How many archived workloads there are, so that a start need not count them.
DROP INDEX archived_counts;
CREATE TABLE archived_counts (
    project_id INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    phase      TEXT NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (project_id, kind, phase)
) STRICT;
INSERT INTO archived_counts
    SELECT project_id, kind, phase, COUNT(*) FROM workloads WHERE archived = 1
    GROUP BY project_id, kind, phase;
CREATE TRIGGER archived_one_more AFTER UPDATE OF archived ON workloads
    WHEN new.archived > old.archived
    BEGIN
        INSERT INTO archived_counts VALUES (new.project_id, new.kind, new.phase, 1)
            ON CONFLICT (project_id, kind, phase) DO UPDATE SET n = n + 1;
    END;
CREATE TRIGGER archived_one_less AFTER UPDATE OF archived ON workloads
    WHEN new.archived < old.archived
    BEGIN
        UPDATE archived_counts SET n = n - 1
            WHERE project_id = old.project_id AND kind = old.kind AND phase = old.phase;
    END;
-- Lists of them in their usual orders, of all and of a project.
CREATE INDEX archived_name ON workloads (name, seq) WHERE archived = 1;
CREATE INDEX archived_completed ON workloads (completed_at, seq) WHERE archived = 1;
CREATE INDEX archived_of_project_seq ON workloads (project_id, seq) WHERE archived = 1;
CREATE INDEX archived_of_project_name ON workloads (project_id, name, seq) WHERE archived = 1;
CREATE INDEX archived_of_project_completed ON workloads (project_id, completed_at, seq)
    WHERE archived = 1;
-- Those that were deleted are found without reading the others.
CREATE INDEX workloads_deleted ON workloads (deleted_at) WHERE deleted_at IS NOT NULL;
