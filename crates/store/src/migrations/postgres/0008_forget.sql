-- What of a log may go: rows before the position that `meta` names. Written before they are deleted,
-- so that nothing else ever is.
CREATE FUNCTION elastane_kept() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF OLD.seq >= COALESCE(
            (SELECT CAST(value AS BIGINT) FROM meta WHERE key = TG_ARGV[0] || '_from'), 0)
        THEN
            RAISE EXCEPTION 'the % log is append-only', TG_ARGV[0];
        END IF;
        RETURN OLD;
    END $$;

DROP TRIGGER events_are_never_changed ON events;
CREATE TRIGGER events_are_never_changed BEFORE UPDATE OR TRUNCATE ON events
    EXECUTE FUNCTION elastane_append_only('event');
CREATE TRIGGER events_are_kept BEFORE DELETE ON events FOR EACH ROW
    EXECUTE FUNCTION elastane_kept('events');

DROP TRIGGER audit_is_never_changed ON audit;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE OR TRUNCATE ON audit
    EXECUTE FUNCTION elastane_append_only('audit');
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit FOR EACH ROW
    EXECUTE FUNCTION elastane_kept('audit');
