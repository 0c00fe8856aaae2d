-- What a database of schema version 5 may hold beside that.
INSERT INTO samples (subject, step_ms, at, body) VALUES
    ('cluster', 0, 1700000000000, '{"cpu":250,"gpu":1500}'),
    ('cluster', 120000, 1699999960000, '{"cpu":200}');
