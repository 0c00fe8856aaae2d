-- Who held how much of GPUs, from when to when; ended_at is empty while it is held.
CREATE TABLE allocations (
    pod_id       TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    project_id   INTEGER NOT NULL,
    project_name TEXT NOT NULL,
    owner        TEXT NOT NULL,
    gpu_model    TEXT NOT NULL,
    gpu_millis   INTEGER NOT NULL,
    PRIMARY KEY (pod_id, started_at)
) STRICT;
CREATE INDEX allocations_ended ON allocations (ended_at);
-- How much of what was held was measured, and used, by the hour; in thousandths of a GPU times
-- milliseconds.
CREATE TABLE gpu_use (
    hour       INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    owner      TEXT NOT NULL,
    gpu_model  TEXT NOT NULL,
    measured   INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    PRIMARY KEY (hour, project_id, owner, gpu_model)
) STRICT;
