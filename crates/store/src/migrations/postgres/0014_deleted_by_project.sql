-- Deleted workloads by project, the newest of each, from the index alone.
DROP INDEX workloads_deleted;
CREATE INDEX workloads_deleted ON workloads (project_id, deleted_at, seq)
    WHERE deleted_at IS NOT NULL;
