-- Number of archived workloads, and bytes of their specifications, also by submitter.
DROP TRIGGER archived_one_more;
DROP TRIGGER archived_one_less;
DROP TABLE archived_counts;
CREATE TABLE archived_counts (
    project_id   INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    phase        TEXT NOT NULL,
    n            INTEGER NOT NULL,
    submitted_by TEXT NOT NULL DEFAULT '',
    bytes        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, kind, phase, submitted_by)
) STRICT;
INSERT INTO archived_counts
    SELECT project_id, kind, phase, COUNT(*), COALESCE(submitted_by, ''),
        SUM(LENGTH(CAST(spec AS BLOB))) FROM workloads WHERE archived = 1
    GROUP BY project_id, kind, phase, COALESCE(submitted_by, '');
CREATE TRIGGER archived_one_more AFTER UPDATE OF archived ON workloads
    WHEN new.archived > old.archived
    BEGIN
        INSERT INTO archived_counts
            VALUES (new.project_id, new.kind, new.phase, 1, new.submitted_by,
                LENGTH(CAST(new.spec AS BLOB)))
            ON CONFLICT (project_id, kind, phase, submitted_by) DO UPDATE
            SET n = n + 1, bytes = bytes + excluded.bytes;
    END;
CREATE TRIGGER archived_one_less AFTER UPDATE OF archived ON workloads
    WHEN new.archived < old.archived
    BEGIN
        UPDATE archived_counts SET n = n - 1, bytes = bytes - LENGTH(CAST(old.spec AS BLOB))
            WHERE project_id = old.project_id AND submitted_by = old.submitted_by
            AND kind = old.kind AND phase = old.phase;
    END;

-- Deleted workloads by project and submitter, the newest of each, from the index alone. Workloads
-- that were submitted before have no submitter here.
DROP INDEX workloads_deleted;
CREATE INDEX workloads_deleted ON workloads (project_id, submitted_by, deleted_at, seq)
    WHERE deleted_at IS NOT NULL;

-- A deleted object leaves no row, except the one with the highest number, which is not given again.
CREATE INDEX objects_deleted ON objects (seq) WHERE deleted_at IS NOT NULL;
DELETE FROM objects WHERE deleted_at IS NOT NULL AND seq < (SELECT MAX(seq) FROM objects);
CREATE TRIGGER objects_gone AFTER UPDATE OF deleted_at ON objects
    WHEN new.deleted_at IS NOT NULL
    BEGIN
        DELETE FROM objects
            WHERE deleted_at IS NOT NULL AND seq < (SELECT MAX(seq) FROM objects);
    END;

-- Events by project and submitter, and audit rows by subject, to count them and find the oldest.
CREATE INDEX events_of_owner ON events (project_id, owner, seq);
CREATE INDEX audit_of_subject ON audit (who, seq);
-- Audit rows of a subject before this position may go, as those of all before `audit_from` in
-- `meta`. Written before they are deleted, so that nothing else ever is.
CREATE TABLE audit_kept_from (
    who TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;
DROP TRIGGER audit_is_kept;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'audit_from'), 0)
    AND OLD.seq >= COALESCE((SELECT seq FROM audit_kept_from WHERE who = OLD.who), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
