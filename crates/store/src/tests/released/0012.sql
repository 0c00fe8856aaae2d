-- What a database of schema version 12 may hold beside that.
UPDATE gpu_use SET memory_measured = 40000, memory_used = 10000;
