-- What each project held in the past, on average over each step of time. Project 0 is the
-- capacity of the cluster.
CREATE TABLE usage (
    step_start   BIGINT NOT NULL,
    project_id   BIGINT NOT NULL,
    gpu_millis   BIGINT NOT NULL,
    cpu_millis   BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    PRIMARY KEY (step_start, project_id)
);
