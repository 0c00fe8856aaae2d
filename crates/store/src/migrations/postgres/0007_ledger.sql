-- Who held how much of GPUs, from when to when; ended_at is empty while it is held.
CREATE TABLE allocations (
    pod_id       TEXT NOT NULL,
    started_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    project_id   BIGINT NOT NULL,
    project_name TEXT NOT NULL,
    owner        TEXT NOT NULL,
    gpu_model    TEXT NOT NULL,
    gpu_millis   BIGINT NOT NULL,
    PRIMARY KEY (pod_id, started_at)
);
CREATE INDEX allocations_ended ON allocations (ended_at);
-- How much of what was held was measured, and used, by the hour; in thousandths of a GPU times
-- milliseconds.
CREATE TABLE gpu_use (
    hour       BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    owner      TEXT NOT NULL,
    gpu_model  TEXT NOT NULL,
    measured   BIGINT NOT NULL,
    used       BIGINT NOT NULL,
    PRIMARY KEY (hour, project_id, owner, gpu_model)
);
