-- What of a log may go: rows before the position that `meta` names. Written before they are deleted,
-- so that nothing else ever is.
DROP TRIGGER events_are_never_deleted;
CREATE TRIGGER events_are_kept BEFORE DELETE ON events
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_from'), 0)
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
DROP TRIGGER audit_is_never_deleted;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'audit_from'), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
