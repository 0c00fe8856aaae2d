-- What decisions follow from beside the state of a workload, once there is any of it.
ALTER TABLE workloads ADD COLUMN past TEXT;
