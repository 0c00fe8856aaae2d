-- How many archived workloads there are, so that a start need not count them.
DROP INDEX archived_counts;
CREATE TABLE archived_counts (
    project_id BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    phase      TEXT NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (project_id, kind, phase)
);
INSERT INTO archived_counts
    SELECT project_id, kind, phase, COUNT(*) FROM workloads WHERE archived = 1
    GROUP BY project_id, kind, phase;
CREATE FUNCTION elastane_count_archived() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF NEW.archived > OLD.archived THEN
            INSERT INTO archived_counts AS counts VALUES (NEW.project_id, NEW.kind, NEW.phase, 1)
                ON CONFLICT (project_id, kind, phase) DO UPDATE SET n = counts.n + 1;
        ELSIF NEW.archived < OLD.archived THEN
            UPDATE archived_counts SET n = n - 1
                WHERE project_id = OLD.project_id AND kind = OLD.kind AND phase = OLD.phase;
        END IF;
        RETURN NULL;
    END $$;
CREATE TRIGGER archived_count AFTER UPDATE OF archived ON workloads FOR EACH ROW
    EXECUTE FUNCTION elastane_count_archived();
-- Lists of them in their usual orders, of all and of a project.
CREATE INDEX archived_name ON workloads (name COLLATE "C", seq) WHERE archived = 1;
CREATE INDEX archived_completed ON workloads (completed_at, seq) WHERE archived = 1;
CREATE INDEX archived_of_project_seq ON workloads (project_id, seq) WHERE archived = 1;
CREATE INDEX archived_of_project_name ON workloads (project_id, name COLLATE "C", seq) WHERE archived = 1;
CREATE INDEX archived_of_project_completed ON workloads (project_id, completed_at, seq)
    WHERE archived = 1;
-- Those that were deleted are found without reading the others.
CREATE INDEX workloads_deleted ON workloads (deleted_at) WHERE deleted_at IS NOT NULL;
