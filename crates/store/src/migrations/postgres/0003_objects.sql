-- Documents that the scheduler does not need: users, rules, assets, templates, settings. `scope`
-- is whose they are (tenant, project/7), `owner` what they cannot outlive (empty: nothing).
CREATE TABLE objects (
    seq        BIGINT NOT NULL PRIMARY KEY,
    kind       TEXT NOT NULL,
    id         TEXT NOT NULL,
    scope      TEXT NOT NULL,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    deleted_at BIGINT,
    UNIQUE (kind, id)
);
CREATE UNIQUE INDEX objects_living_name ON objects (kind, scope, owner, name)
    WHERE deleted_at IS NULL;

-- From where and how it was asked: JSON of `AuditDetail`.
ALTER TABLE audit ADD COLUMN detail TEXT NOT NULL DEFAULT '{}';
CREATE INDEX audit_by_time ON audit (at);
