-- What a database of schema version 6 may hold beside that.
INSERT INTO usage (step_start, project_id, pool, gpu_millis, cpu_millis, memory_bytes) VALUES
    (0, 1, 'a100', 1000, 0, 0);
