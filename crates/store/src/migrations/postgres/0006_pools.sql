-- What was held is told for each node pool; the empty name is that of `default`.
ALTER TABLE usage ADD COLUMN pool TEXT NOT NULL DEFAULT '';
ALTER TABLE usage DROP CONSTRAINT usage_pkey;
ALTER TABLE usage ADD PRIMARY KEY (step_start, project_id, pool);
