-- What a database of schema version 9 may hold beside that.
INSERT INTO workloads (id, seq, project_id, name, spec, created_at, phase, phase_since, desired,
        restarts, completed_at, waited_ms, ran_ms, archived, kind, submitted_by)
    SELECT '00000000-0000-0000-0000-0000000000a9', 900, project_id, 'archived', spec, created_at,
        'completed', phase_since, desired, restarts, 1700000050000, waited_ms, ran_ms, 1,
        'training', 'ann'
    FROM workloads WHERE deleted_at IS NULL ORDER BY seq LIMIT 1;
