-- What was held is told for each node pool; the empty name is that of `default`.
CREATE TABLE usage_by_pool (
    step_start   INTEGER NOT NULL,
    project_id   INTEGER NOT NULL,
    pool         TEXT NOT NULL DEFAULT '',
    gpu_millis   INTEGER NOT NULL,
    cpu_millis   INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    PRIMARY KEY (step_start, project_id, pool)
) STRICT;
INSERT INTO usage_by_pool (step_start, project_id, gpu_millis, cpu_millis, memory_bytes)
    SELECT step_start, project_id, gpu_millis, cpu_millis, memory_bytes FROM usage;
DROP TABLE usage;
ALTER TABLE usage_by_pool RENAME TO usage;
