-- What a database of schema version 7 may hold beside that.
INSERT INTO allocations (pod_id, started_at, ended_at, project_id, project_name, owner, gpu_model, gpu_millis) VALUES
    ('00000000-0000-0000-0000-000000000007', 1700000000000, 1700000060000, 2, 'gone', 'ann', 'simulated', 1000),
    ('00000000-0000-0000-0000-000000000008', 1700000000000, NULL, 1, 'team-a', 'ann', 'simulated', 500);
INSERT INTO gpu_use (hour, project_id, owner, gpu_model, measured, used) VALUES
    (1699999200000, 1, 'ann', 'simulated', 30000000, 10000000);
