-- How far departments and projects are behind their fair shares of the GPUs, by node pool: of a
-- department project_id is 0, of a project department_id. The empty name is that of `default`.
CREATE TABLE lags (
    department_id BIGINT NOT NULL,
    project_id    BIGINT NOT NULL,
    pool          TEXT NOT NULL,
    value         BIGINT NOT NULL,
    since         BIGINT NOT NULL,
    fair_millis   BIGINT NOT NULL,
    held_millis   BIGINT NOT NULL,
    turn_since    BIGINT,
    PRIMARY KEY (department_id, project_id, pool)
);
