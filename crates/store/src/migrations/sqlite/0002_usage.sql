-- What each project held in the past, on average over each step of time. Project 0 is the
-- capacity of the cluster.
CREATE TABLE usage (
    step_start   INTEGER NOT NULL,
    project_id   INTEGER NOT NULL,
    gpu_millis   INTEGER NOT NULL,
    cpu_millis   INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    PRIMARY KEY (step_start, project_id)
) STRICT;
