INSERT INTO lags (department_id, project_id, pool, value, since, fair_millis, held_millis, turn_since) VALUES (0, 1, '', -7, 5, 1000, 2000, NULL);
