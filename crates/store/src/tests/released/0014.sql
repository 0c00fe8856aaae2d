-- The number of a workload that is no longer kept.
INSERT INTO meta (key, value) VALUES ('workload_seq', '990');
