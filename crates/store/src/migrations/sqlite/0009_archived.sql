-- Ended workloads that left memory: `archived` is 1, and these columns are what they are listed by.
ALTER TABLE workloads ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workloads ADD COLUMN kind TEXT;
ALTER TABLE workloads ADD COLUMN submitted_by TEXT;
-- What a start reads.
CREATE INDEX workloads_in_memory ON workloads (seq) WHERE archived = 0 AND deleted_at IS NULL;
-- How many there are, and lists of them in their usual orders.
CREATE INDEX archived_counts ON workloads (project_id, kind, phase) WHERE archived = 1;
CREATE INDEX archived_seq ON workloads (seq) WHERE archived = 1;
CREATE INDEX archived_created ON workloads (created_at, name, seq) WHERE archived = 1;
CREATE INDEX archived_of_project ON workloads (project_id, created_at, name, seq)
    WHERE archived = 1;
