-- What was measured over time. A row of step 0 is one look; others are means over their step.
CREATE TABLE samples (
    subject TEXT NOT NULL,
    step_ms BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (subject, step_ms, at)
);
CREATE INDEX samples_time ON samples (step_ms, at);
