-- What a database of schema version 17 may hold beside that: an eviction with its beneficiary.
INSERT INTO events (seq, at, kind, warning, project_id, project_name, workload_id, workload_name,
        pod_name, code, message, beneficiary) VALUES
    (3, 7, 'Preempted', 1, 1, 'team-a', '00000000-0000-0000-0000-000000000001', 'train', 'train-0', 'E101', 'stopped',
    '{"document_version":1,"id":"00000000-0000-4000-8000-000000000017","name":"b1","project":"team-b"}');
