-- What stands between the cluster and the projects. The first one is made by the server when it
-- finds none; projects from before belong to it.
CREATE TABLE departments (
    id         BIGINT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX departments_living_name ON departments (name) WHERE deleted_at IS NULL;
