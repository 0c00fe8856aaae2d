-- What a database of schema version 11 may hold beside that.
UPDATE workloads SET past = '{"document_version":1,"last_start":5,"last_resize":null,'
        || '"last_eviction":4,"checkpointed_at":null,"stale_since":6,"restarts":3}'
    WHERE seq = (SELECT MIN(seq) FROM workloads WHERE deleted_at IS NULL);
