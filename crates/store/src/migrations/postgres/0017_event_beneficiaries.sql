-- The workload for which another was stopped, moved or resized, as in `workloads.eviction`; none for
-- other events, and for those of before.
ALTER TABLE events ADD COLUMN beneficiary TEXT;
