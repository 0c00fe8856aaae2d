-- What a database of schema version 3 may hold beside that.
INSERT INTO objects (seq, kind, id, scope, owner, name, body, created_at, created_by, updated_at,
        updated_by, deleted_at) VALUES
    (1, 'user', 'u1', 'tenant', '', 'ann', '{"secrets":{"password":"hash"}}', 1, 'admin', 2, 'admin', NULL),
    (2, 'user', 'u2', 'tenant', '', 'bob', '{}', 1, 'admin', 2, 'admin', 9);
