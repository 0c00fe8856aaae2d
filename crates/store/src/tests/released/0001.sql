-- What a database of schema version 1 may hold.
INSERT INTO meta (key, value) VALUES
    ('cluster_uuid', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff'), ('created_at', '1700000000000');
INSERT INTO projects (id, name, body, deleted_at) VALUES
    (1, 'team-a', '{"description":"","created_by":"ann","created_at_ms":1,"updated_at_ms":2,"gpu_quota_millis":2000,"gpu_limit_millis":null,"over_quota_weight":2,"cpu_quota_millis":null,"memory_quota_bytes":null}', NULL),
    (2, 'gone', '{"description":"","created_by":"ann","created_at_ms":1,"updated_at_ms":2,"gpu_quota_millis":0,"gpu_limit_millis":null,"over_quota_weight":0,"cpu_quota_millis":null,"memory_quota_bytes":null}', 9);
INSERT INTO workloads (id, seq, project_id, name, spec, created_at, phase, phase_since, desired,
        restarts, not_before, completed_at, waited_ms, ran_ms, eviction, deleted_at) VALUES
    ('00000000-0000-0000-0000-000000000001', 1, 1, 'train', '{"name":"train","kind":"training","submitted_by":"ann","source":"CLI","image":"ubuntu","command":null,"args":[],"env":{},"working_dir":null,"gpu":{"whole":{"devices":1}},"cpu_millis":100,"memory_bytes":1048576,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"restart":"never","grace_ms":30000,"command_line":null,"labels":{},"annotations":{}}', 5, 'running', 6, 'run', 1, NULL, NULL, 1, 0, '{"code":"E1","message":"moved","at_ms":6}', NULL);
INSERT INTO pods (id, workload_id, pod_index, generation, body) VALUES
    ('00000000-0000-0000-0000-0000000003e9', '00000000-0000-0000-0000-000000000001', 0, 2, '{"current":{"node":"n1","devices":[[0,1000]]},"releasing":false,"next":null,"placed_at_ms":6,"started_at_ms":7,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO events (seq, at, kind, warning, project_id, project_name, workload_id, workload_name,
        pod_name, code, message) VALUES
    (1, 5, 'Submitted', 0, 1, 'team-a', '00000000-0000-0000-0000-000000000001', 'train', NULL, NULL, 'submitted by ann'),
    (2, 6, 'Evicted', 1, 1, 'team-a', '00000000-0000-0000-0000-000000000001', 'train', 'train-0', 'E1', 'moved');
INSERT INTO credentials (client_id, secret_sha256, subject, created_at) VALUES ('cli', 'ab', 'ann', 3);
INSERT INTO audit (at, who, what, target, result) VALUES (5, 'ann', 'workload.create', 'train', 'ok');
