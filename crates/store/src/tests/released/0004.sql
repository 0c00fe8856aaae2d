-- What a database of schema version 4 may hold beside that.
INSERT INTO departments (id, name, body, deleted_at) VALUES
    (1, 'default', '{"description":"","created_by":"elastane","created_at_ms":1,"updated_by":"elastane","updated_at_ms":1,"share":null}', NULL),
    (2, 'gone', '{"description":"","created_by":"ann","created_at_ms":1,"updated_by":"ann","updated_at_ms":2,"share":{"gpu_quota_millis":2000,"gpu_limit_millis":null,"over_quota_weight":2,"cpu_quota_millis":null,"memory_quota_bytes":null}}', 9);
