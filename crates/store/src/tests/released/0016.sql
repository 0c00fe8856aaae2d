-- What a database of schema version 16 may hold beside that: a workload that was deleted, with its
-- submitter.
INSERT INTO workloads (id, seq, project_id, name, spec, created_at, phase, phase_since, desired,
        restarts, waited_ms, ran_ms, deleted_at, submitted_by)
    SELECT '00000000-0000-4000-8000-000000000016', 980, project_id, 'gone', spec, created_at, phase,
        phase_since, 'delete', restarts, waited_ms, ran_ms, 1700000000000, 'ann'
    FROM workloads WHERE seq = 1;
UPDATE archived_counts SET submitted_by = 'ann';
INSERT INTO audit_kept_from (who, seq) VALUES ('ann', 1);
