-- Instants are milliseconds since the Unix epoch; ids are hyphenated UUIDs in text; bodies are
-- JSON in the storage types of `rows.rs`. Column types keep to what PostgreSQL has too.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE projects (
    id         INTEGER NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE UNIQUE INDEX projects_living_name ON projects (name) WHERE deleted_at IS NULL;

CREATE TABLE workloads (
    id           TEXT NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL UNIQUE,
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    name         TEXT NOT NULL,
    spec         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    phase        TEXT NOT NULL,
    phase_since  INTEGER NOT NULL,
    desired      TEXT NOT NULL,
    restarts     INTEGER NOT NULL,
    not_before   INTEGER,
    completed_at INTEGER,
    waited_ms    INTEGER NOT NULL,
    ran_ms       INTEGER NOT NULL,
    eviction     TEXT,
    deleted_at   INTEGER
) STRICT;
CREATE UNIQUE INDEX workloads_living_name ON workloads (project_id, name) WHERE deleted_at IS NULL;

CREATE TABLE pods (
    id          TEXT NOT NULL PRIMARY KEY,
    workload_id TEXT NOT NULL REFERENCES workloads (id),
    pod_index   INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    body        TEXT NOT NULL
) STRICT;
CREATE INDEX pods_of_workload ON pods (workload_id);

CREATE TABLE events (
    seq           INTEGER NOT NULL PRIMARY KEY,
    at            INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    warning       INTEGER NOT NULL,
    project_id    INTEGER,
    project_name  TEXT NOT NULL,
    workload_id   TEXT,
    workload_name TEXT NOT NULL,
    pod_name      TEXT,
    code          TEXT,
    message       TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_workload ON events (workload_id, seq);
CREATE INDEX events_of_project ON events (project_id, seq);
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;

CREATE TABLE credentials (
    client_id     TEXT NOT NULL PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    subject       TEXT NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    what   TEXT NOT NULL,
    target TEXT NOT NULL,
    result TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
