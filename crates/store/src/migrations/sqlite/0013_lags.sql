-- How far departments and projects are behind their fair shares of the GPUs, by node pool: of a
-- department project_id is 0, of a project department_id. The empty name is that of `default`.
CREATE TABLE lags (
    department_id INTEGER NOT NULL,
    project_id    INTEGER NOT NULL,
    pool          TEXT NOT NULL,
    value         INTEGER NOT NULL,
    since         INTEGER NOT NULL,
    fair_millis   INTEGER NOT NULL,
    held_millis   INTEGER NOT NULL,
    turn_since    INTEGER,
    PRIMARY KEY (department_id, project_id, pool)
) STRICT;
