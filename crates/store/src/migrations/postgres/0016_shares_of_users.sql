-- Number of archived workloads, and bytes of their specifications, also by submitter.
DROP TABLE archived_counts;
CREATE TABLE archived_counts (
    project_id   BIGINT NOT NULL,
    kind         TEXT NOT NULL,
    phase        TEXT NOT NULL,
    n            BIGINT NOT NULL,
    submitted_by TEXT NOT NULL DEFAULT '',
    bytes        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, kind, phase, submitted_by)
);
INSERT INTO archived_counts
    SELECT project_id, kind, phase, COUNT(*), COALESCE(submitted_by, ''),
        SUM(OCTET_LENGTH(spec)) FROM workloads WHERE archived = 1
    GROUP BY project_id, kind, phase, COALESCE(submitted_by, '');
CREATE OR REPLACE FUNCTION elastane_count_archived() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF NEW.archived > OLD.archived THEN
            INSERT INTO archived_counts AS counts
                VALUES (NEW.project_id, NEW.kind, NEW.phase, 1, NEW.submitted_by,
                OCTET_LENGTH(NEW.spec))
                ON CONFLICT (project_id, kind, phase, submitted_by)
                    DO UPDATE SET n = counts.n + 1, bytes = counts.bytes + EXCLUDED.bytes;
        ELSIF NEW.archived < OLD.archived THEN
            UPDATE archived_counts SET n = n - 1, bytes = bytes - OCTET_LENGTH(OLD.spec)
                WHERE project_id = OLD.project_id AND submitted_by = OLD.submitted_by
                AND kind = OLD.kind AND phase = OLD.phase;
        END IF;
        RETURN NULL;
    END $$;

-- Deleted workloads by project and submitter, the newest of each, from the index alone. Workloads
-- that were submitted before have no submitter here.
DROP INDEX workloads_deleted;
CREATE INDEX workloads_deleted ON workloads (project_id, submitted_by, deleted_at, seq)
    WHERE deleted_at IS NOT NULL;

-- A deleted object leaves no row, except the one with the highest number, which is not given again.
CREATE INDEX objects_deleted ON objects (seq) WHERE deleted_at IS NOT NULL;
DELETE FROM objects WHERE deleted_at IS NOT NULL AND seq < (SELECT MAX(seq) FROM objects);
CREATE FUNCTION elastane_objects_gone() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        DELETE FROM objects
            WHERE deleted_at IS NOT NULL AND seq < (SELECT MAX(seq) FROM objects);
        RETURN NULL;
    END $$;
CREATE TRIGGER objects_gone AFTER UPDATE OF deleted_at ON objects FOR EACH ROW
    WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION elastane_objects_gone();

-- Events by project and submitter, and audit rows by subject, to count them and find the oldest.
CREATE INDEX events_of_owner ON events (project_id, owner, seq);
CREATE INDEX audit_of_subject ON audit (who, seq);
-- Audit rows of a subject before this position may go, as those of all before `audit_from` in
-- `meta`. Written before they are deleted, so that nothing else ever is.
CREATE TABLE audit_kept_from (
    who TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);
CREATE FUNCTION elastane_audit_kept() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF OLD.seq >= COALESCE(
            (SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'audit_from'), 0)
        AND OLD.seq >= COALESCE((SELECT seq FROM audit_kept_from WHERE who = OLD.who), 0)
        THEN
            RAISE EXCEPTION 'the audit log is append-only';
        END IF;
        RETURN OLD;
    END $$;
DROP TRIGGER audit_is_kept ON audit;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit FOR EACH ROW
    EXECUTE FUNCTION elastane_audit_kept();
