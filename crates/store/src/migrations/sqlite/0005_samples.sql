-- What was measured over time. A row of step 0 is one look; others are means over their step.
CREATE TABLE samples (
    subject TEXT NOT NULL,
    step_ms INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (subject, step_ms, at)
) STRICT;
CREATE INDEX samples_time ON samples (step_ms, at);
