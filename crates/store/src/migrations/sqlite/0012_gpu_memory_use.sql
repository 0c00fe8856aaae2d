-- How much of the memory that was held was measured, and in use, by the hour; in MiB times
-- milliseconds.
ALTER TABLE gpu_use ADD COLUMN memory_measured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gpu_use ADD COLUMN memory_used INTEGER NOT NULL DEFAULT 0;
