-- What a database of schema version 2 may hold beside that.
INSERT INTO usage (step_start, project_id, gpu_millis, cpu_millis, memory_bytes) VALUES
    (3600000, 0, 8000, 64000, 1024), (3600000, 1, 1000, 100, 512);
