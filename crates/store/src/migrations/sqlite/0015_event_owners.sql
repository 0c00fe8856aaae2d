-- Submitter of the workload of an event; empty for other events, and for those of before.
ALTER TABLE events ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- Events of a project (0: of none) and a submitter before this position may go, as those of all
-- before `events_from` in `meta`. Written before they are deleted, so that nothing else ever is.
CREATE TABLE events_kept_from (
    project_id INTEGER NOT NULL,
    owner      TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (project_id, owner)
) STRICT;
DROP TRIGGER events_are_kept;
CREATE TRIGGER events_are_kept BEFORE DELETE ON events
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_from'), 0)
    AND OLD.seq >= COALESCE((SELECT seq FROM events_kept_from
        WHERE project_id = COALESCE(OLD.project_id, 0) AND owner = OLD.owner), 0)
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
