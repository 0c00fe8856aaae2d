PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'first','2026-11-23 03:08:54',1,X'5c065f3a86e461a2eb388a27fc15f5865263fcd200920edd66f5d39491e86801bd98f3ee2c55235465aced254cd19d65',24919683);
INSERT INTO _sqlx_migrations VALUES(2,'usage','2026-11-23 03:08:54',1,X'5e773d0818ed6618a1ce6094fa36e939c1409e64694acc2eb7014e9f89b6811cc80934e01186e8a543b0487529803cfe',10709292);
INSERT INTO _sqlx_migrations VALUES(3,'objects','2026-11-23 03:08:54',1,X'91fb39df7693c855e30de600684c20bf5ccc958cd1161605c57776013e11c42c03c8936ca33ded904e9f2eca34439c01',6615799);
INSERT INTO _sqlx_migrations VALUES(4,'departments','2026-11-23 03:08:54',1,X'e84b6bd4ed2bfa0964ab345911fbbf380b43e5743a360ca3bfb914f9d51f99306ab4bbc5a54871e49fbbaa080a78dbcd',8693558);
INSERT INTO _sqlx_migrations VALUES(5,'samples','2026-11-23 03:08:54',1,X'6996355d70b9d71ba1673197db34e51da745496b795a3e5e8a99e3d502ccde180299335acbb0d4b3078d98059d9d8a58',11474873);
INSERT INTO _sqlx_migrations VALUES(6,'pools','2026-11-23 03:08:54',1,X'4f1a353693b85fc171f01c0d319bc5867dbd60e9965af0ee390195b69af8f90edcd2b35ab657da9a49105648743616d8',11655223);
INSERT INTO _sqlx_migrations VALUES(7,'ledger','2026-11-23 03:08:54',1,X'34834c8876a19a554d220df394b271ec0435ac392810a83b341ed28e54a0fe8163c31353c0f184f2778ce6bf2a6aac7e',15951547);
INSERT INTO _sqlx_migrations VALUES(8,'forget','2026-11-23 03:08:54',1,X'6687e84e4be29b1bf768795b5210d0be83ae373cc309fe92c074243968e834eefb23b3ede39dfe047823824ae8850b8f',11922735);
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
INSERT INTO meta VALUES('cluster_uuid','751bee0f-0828-4b50-92a7-d49bec9fd4b5');
INSERT INTO meta VALUES('created_at','1795403334491');
INSERT INTO meta VALUES('clock','75bc20ff-5573-4e81-85fc-9bfc683f41d9 1795354503924');
CREATE TABLE projects (
    id         INTEGER NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    deleted_at INTEGER
) STRICT;
INSERT INTO projects VALUES(1,'team-a','{"description":"the first","created_by":"root","created_at_ms":1795403334687,"updated_by":"root","updated_at_ms":1795403334687,"department_id":2,"rules":{},"gpu_quota_millis":2000,"gpu_limit_millis":3500,"over_quota_weight":3,"cpu_quota_millis":4000,"memory_quota_bytes":4294967296,"cpu_limit_millis":32000,"rank":"high","pool_shares":{"01a20660-c3ff-7666-955d-9bb0c52bd2c9":{"gpu_quota_millis":1000,"over_quota_weight":0}},"default_pools":["default","big"],"node_types":{}}',NULL);
INSERT INTO projects VALUES(2,'team-b','{"description":"","created_by":"root","created_at_ms":1795403334694,"updated_by":"root","updated_at_ms":1795403334694,"department_id":2,"rules":{},"gpu_quota_millis":1500,"node_types":{"training":["large"]}}',NULL);
INSERT INTO projects VALUES(3,'team-c','{"description":"","created_by":"root","created_at_ms":1795403334699,"updated_by":"root","updated_at_ms":1795403334699,"department_id":1,"rules":{"training_run_ms_max":86400000,"workspace_run_ms_max":80000000,"workspace_idle_ms_max":7200000},"gpu_quota_millis":0,"node_types":{}}',NULL);
INSERT INTO projects VALUES(4,'closed','{"description":"","created_by":"root","created_at_ms":1795403334705,"updated_by":"root","updated_at_ms":1795403334705,"department_id":1,"rules":{},"gpu_quota_millis":1000,"node_types":{}}',1795403334712);
CREATE TABLE workloads (
    id           TEXT NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL UNIQUE,
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    name         TEXT NOT NULL,
    spec         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    phase        TEXT NOT NULL,
    phase_since  INTEGER NOT NULL,
    desired      TEXT NOT NULL,
    restarts     INTEGER NOT NULL,
    not_before   INTEGER,
    completed_at INTEGER,
    waited_ms    INTEGER NOT NULL,
    ran_ms       INTEGER NOT NULL,
    eviction     TEXT,
    deleted_at   INTEGER
) STRICT;
INSERT INTO workloads VALUES('01a20660-c628-73ae-ac8d-c343d65dcff4',1,1,'whole','{"name":"whole","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{"LR":"0.1"},"secrets":[{"object":"generic-secret-asset/01a20660-c5b6-7206-b613-264e2099f33a","named":"generic","key":"a","variable":"KEY"},{"object":"config-map/conf","named":"conf","key":"train.yaml","variable":"CONF"}],"working_dir":"/tmp","gpu":{"whole":{"devices":1}},"cpu_millis":500,"memory_bytes":100000000,"restart":"never","grace_ms":1000,"container":{"cpu_millis_max":2000,"memory_bytes_max":1000000000,"shared_memory_large":true},"elastic":false,"priority":125,"priority_class":"high","preemptible":false,"backoff_limit":3,"delete_after_ms":3600000000,"delete_when_preempted":true,"command_line":"runai submit whole -g 1","uses":["generic-secret-asset/01a20660-c5b6-7206-b613-264e2099f33a","config-map/conf"],"labels":{"team":"x"},"annotations":{"note":"y"},"node_pools":["default","big"]}',1795403335209,'running',1795403340332,'run',0,NULL,NULL,5123,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c635-740b-896c-32e26e3da03c',2,1,'share','{"name":"share","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"share":{"devices":1,"millis":250}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335221,'running',1795403348112,'run',0,NULL,NULL,7698,5193,'{"code":"E207","message":"GPU 3 of node-2, which it used, is lost: it was made to fail (simulated)","at_ms":1795403347112}',NULL);
INSERT INTO workloads VALUES('01a20660-c63f-7540-ba35-8a7757acff41',3,2,'memory','{"name":"memory","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"memory":{"devices":1,"bytes":4000000000}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_types":["large"]}',1795403335232,'running',1795403341320,'run',0,NULL,NULL,6088,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c654-73e7-9667-c48d89501c38',4,1,'migs','{"name":"migs","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"mig":{"instances":[["1g.5gb",2]]}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335253,'pending',1795403335253,'run',0,NULL,NULL,0,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c674-73b2-ba93-d6866e7ac7bd',5,1,'elastic','{"name":"elastic","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":2}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":true,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["big"]}',1795403335284,'running',1795403342976,'run',0,NULL,NULL,7692,0,'{"code":"E104","message":"shrunk from 2 to 1 GPU(s) for team-c/manifest","at_ms":1795403335770}',NULL);
INSERT INTO workloads VALUES('01a20660-c68a-773b-b617-527ca92a739f',6,1,'too-large','{"name":"too-large","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":64}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335306,'pending',1795403335306,'run',0,NULL,NULL,0,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c697-7581-ae50-8decef146527',7,1,'many','{"name":"many","kind":"training","submitted_by":"root","source":"Control-plane","pods":3,"at_once":2,"image":"elastane-test:latest","command":["sh"],"args":["-c","sleep 100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335320,'running',1795403339252,'run',0,NULL,NULL,3932,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c6a1-722e-b788-4c1c2b16c747',8,1,'good','{"name":"good","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["true"],"args":[],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335330,'completed',1795403341823,'run',0,NULL,1795403341823,6493,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c6c5-749a-8a13-830c680da3b6',9,1,'bad','{"name":"bad","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["false"],"args":[],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":0,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335365,'failed',1795403341806,'run',0,NULL,1795403341806,6441,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c6e3-7791-91eb-aec7a6b8505f',10,1,'gone','{"name":"gone","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335395,'deleting',1795403344042,'delete',0,NULL,NULL,4392,4255,NULL,1795403344199);
INSERT INTO workloads VALUES('01a20660-c725-729a-bb55-0caa0d4bf7e0',11,2,'stopped','{"name":"stopped","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":1}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_types":["large"]}',1795403335461,'stopped',1795403343966,'suspend',0,NULL,NULL,5799,2548,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c749-7143-81e8-05072c96ee92',12,2,'placed','{"name":"placed","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","place":{"affinity":[[{"key":"zone","operator":"in","values":["b"]}]],"tolerations":[{"key":"busy","value":null,"effect":"no-schedule"}],"near":["zone",false]},"gpu":{"whole":{"devices":1}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":false,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_types":["large"]}',1795403335498,'pending',1795403335498,'run',0,NULL,NULL,0,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c760-7109-a885-9fc2f40d259a',13,1,'from-assets','{"name":"from-assets","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{"FROM":"asset"},"working_dir":"/tmp","gpu":{"share":{"devices":1,"millis":250}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"uses":["environment-asset/01a20660-c566-7466-919a-a8992d21eef5","compute-asset/01a20660-c55f-72b7-a549-4b5e0655effc"],"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335521,'running',1795403348243,'run',0,NULL,NULL,7939,4783,'{"code":"E207","message":"GPU 3 of node-2, which it used, is lost: it was made to fail (simulated)","at_ms":1795403347112}',NULL);
INSERT INTO workloads VALUES('01a20660-c79f-753c-8757-ab68c4e91d11',14,1,'from-template','{"name":"from-template","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["1000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":2}},"cpu_millis":100,"memory_bytes":1000000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"uses":["template/01a20660-c5ed-74d0-9f73-626a676eb934","compute-asset/01a20660-c559-752b-9199-620fd4ae2604"],"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335583,'running',1795403346964,'run',0,NULL,NULL,6292,5089,'{"code":"E207","message":"GPU 3 of node-1, which it used, is lost: it was made to fail (simulated)","at_ms":1795403345084}',NULL);
INSERT INTO workloads VALUES('01a20660-c7ce-76c0-98be-05d0ed60a2d9',15,1,'notebook','{"name":"notebook","kind":"workspace","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{"POLICY":"1"},"working_dir":"/tmp","gpu":{"share":{"devices":1,"millis":500}},"cpu_millis":100,"memory_bytes":100000000,"restart":"on-failure","grace_ms":30000,"stdin":true,"tty":true,"urls":[{"port":8888,"audience":"authenticated","name":"jupyter"}],"related_urls":[{"url":"https://docs.example","name":"docs","tool_type":"Docs"}],"elastic":false,"priority":100,"priority_class":"build","preemptible":false,"backoff_limit":0,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335630,'running',1795403341260,'run',0,NULL,NULL,5630,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c7e7-7064-a115-edd8bba0ebf7',16,1,'crashing','{"name":"crashing","kind":"workspace","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["false"],"args":[],"env":{"POLICY":"1"},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"on-failure","grace_ms":30000,"elastic":false,"priority":100,"priority_class":"build","preemptible":false,"backoff_limit":0,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335656,'initializing',1795403335656,'run',7,NULL,NULL,0,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c803-74f8-82c2-7d471d44acf9',17,1,'torch','{"name":"torch","kind":"distributed","submitted_by":"root","source":"Control-plane","role":"master","image":"elastane-test:latest","command":["sleep"],"args":["9999"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"more":[{"role":"worker","pods":2,"image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"share":{"devices":1,"millis":200}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000}],"together":{"framework":"pytorch","slots_per_worker":1,"clean":"running"},"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{"kai.scheduler/topology-preferred-placement":"rack"},"node_pools":["default","big"],"topology":{"id":"01a20660-c3e6-71ad-9502-79d0c8a3f8cc","preferred":"rack"}}',1795403335684,'running',1795403343480,'run',0,NULL,NULL,6871,925,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c812-7681-be16-684c8c20fed1',18,3,'mpi','{"name":"mpi","kind":"distributed","submitted_by":"root","source":"Control-plane","role":"master","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"more":[{"role":"worker","pods":2,"pods_min":2,"image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000}],"together":{"framework":"mpi","slots_per_worker":4,"first_waits":true,"clean":"all"},"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"topology":{"id":"01a20660-c3e6-71ad-9502-79d0c8a3f8cc","preferred":"rack"}}',1795403335698,'running',1795403343707,'run',0,NULL,NULL,8009,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c81d-717d-9934-a6842eeffec2',19,1,'svc','{"name":"svc","kind":"inference","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["httpd"],"args":["-f","-p","8000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"always","grace_ms":30000,"serving":{"container_port":8000,"scaling":{"replicas_min":1,"replicas_max":2,"replicas_initial":1,"replicas_activation":1,"metric":"throughput","threshold":10,"percent_millis":70000,"window_ms":60000,"down_delay_ms":0,"zero_retention_ms":0},"start_ms_max":600000,"request_ms_max":300000,"audience":"everyone","probe":{"first_ms":0,"period_ms":1000,"wait_ms_max":1000,"successes":1,"failures":3}},"elastic":false,"priority":125,"priority_class":"inference","preemptible":false,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335709,'running',1795403344962,'run',0,NULL,NULL,6375,2878,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c81d-717d-9934-a685b547a3d2',20,1,'svc.1','{"name":"svc.1","kind":"inference","submitted_by":"root","source":"Control-plane","pods":2,"image":"elastane-test:latest","command":["httpd"],"args":["-f","-p","8000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"always","grace_ms":30000,"serving":{"container_port":8000,"scaling":{"replicas_min":1,"replicas_max":2,"replicas_initial":1,"replicas_activation":1,"metric":"throughput","threshold":10,"percent_millis":70000,"window_ms":60000,"down_delay_ms":0,"zero_retention_ms":0},"start_ms_max":600000,"request_ms_max":300000,"audience":"everyone","probe":{"first_ms":0,"period_ms":1000,"wait_ms_max":1000,"successes":1,"failures":3}},"revision":{"of":"01a20660-c81d-717d-9934-a6842eeffec2","number":1},"elastic":false,"priority":125,"priority_class":"inference","preemptible":false,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335709,'stopped',1795403344572,'suspend',0,NULL,NULL,5690,2878,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c85a-7099-bdef-b550d919f41b',21,3,'manifest','{"name":"manifest","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"working_dir":"/tmp","gpu":{"whole":{"devices":1}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":1,"command_line":null,"labels":{},"annotations":{},"manifest":"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"manifest\"},\"spec\":{\"backoffLimit\":1,\"template\":{\"spec\":{\"containers\":[{\"args\":[\"100000\"],\"command\":[\"sleep\"],\"image\":\"elastane-test:latest\",\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}],\"restartPolicy\":\"Never\"}}}}"}',1795403335770,'running',1795403343006,'run',0,NULL,NULL,7236,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-c8a0-72ff-99e4-6dd3f48bf6ef',22,1,'around','{"name":"around","kind":"training","submitted_by":"root","source":"Control-plane","image":"elastane-test:latest","command":["sleep"],"args":["100000"],"env":{},"secrets":[{"object":"generic-secret-asset/01a20660-c5b6-7206-b613-264e2099f33a","named":"generic","path":"/etc/gs","mode":384},{"object":"config-map/conf","named":"conf","path":"/etc/conf","mode":420}],"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"never","grace_ms":30000,"container":{"mounts":[{"to":"/data","from":{"volume":{"name":"p1-data","ephemeral":false}}},{"to":"/code","from":{"git":{"repository":"http://127.0.0.1:1/x","branch":"main","revision":null}}},{"to":"/scratch","from":{"scratch":{"bytes_max":1000000,"in_memory":true}}}],"ports":[[80,18080]]},"elastic":false,"priority":50,"priority_class":"train","preemptible":true,"backoff_limit":6,"command_line":null,"uses":["generic-secret-asset/01a20660-c5b6-7206-b613-264e2099f33a","config-map/conf"],"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403335840,'failed',1795403351517,'run',0,NULL,1795403351517,15677,0,NULL,NULL);
INSERT INTO workloads VALUES('01a20660-e986-7504-a811-51bd795d8c7d',23,1,'svc.2','{"name":"svc.2","kind":"inference","submitted_by":"root","source":"Control-plane","pods":2,"image":"elastane-test:latest","command":["httpd"],"args":["-f","-p","8000"],"env":{"REVISION":"2"},"working_dir":"/tmp","gpu":{"whole":{"devices":0}},"cpu_millis":100,"memory_bytes":100000000,"restart":"always","grace_ms":30000,"serving":{"container_port":8000,"scaling":{"replicas_min":1,"replicas_max":2,"replicas_initial":1,"replicas_activation":1,"metric":"throughput","threshold":10,"percent_millis":70000,"window_ms":60000,"down_delay_ms":0,"zero_retention_ms":0},"start_ms_max":600000,"request_ms_max":300000,"audience":"everyone","probe":{"first_ms":0,"period_ms":1000,"wait_ms_max":1000,"successes":1,"failures":3}},"revision":{"of":"01a20660-c81d-717d-9934-a6842eeffec2","number":2},"elastic":false,"priority":125,"priority_class":"inference","preemptible":false,"backoff_limit":6,"command_line":null,"labels":{},"annotations":{},"node_pools":["default","big"]}',1795403344263,'running',1795403344962,'run',0,NULL,NULL,699,0,NULL,NULL);
CREATE TABLE pods (
    id          TEXT NOT NULL PRIMARY KEY,
    workload_id TEXT NOT NULL REFERENCES workloads (id),
    pod_index   INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    body        TEXT NOT NULL
) STRICT;
INSERT INTO pods VALUES('01a20660-c628-73ae-ac8d-c344b9eb4ca9','01a20660-c628-73ae-ac8d-c343d65dcff4',0,1,'{"current":{"node":"node-1","devices":[[0,1000]]},"releasing":false,"next":null,"placed_at_ms":1795403335209,"held_since_ms":1795403335209,"started_at_ms":1795403340187,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c635-740b-896c-32e39774c833','01a20660-c635-740b-896c-32e26e3da03c',0,3,'{"current":{"node":"node-1","devices":[[3,250]]},"releasing":false,"next":null,"placed_at_ms":1795403347340,"held_since_ms":1795403335221,"started_at_ms":1795403348101,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c63f-7540-ba35-8a786811d043','01a20660-c63f-7540-ba35-8a7757acff41',0,1,'{"current":{"node":"node-2","devices":[[0,94]]},"releasing":false,"next":null,"placed_at_ms":1795403335232,"held_since_ms":1795403335232,"started_at_ms":1795403341193,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c654-73e7-9667-c48e7f45a43b','01a20660-c654-73e7-9667-c48d89501c38',0,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c674-73b2-ba93-d687e7ea40a8','01a20660-c674-73b2-ba93-d6866e7ac7bd',0,2,'{"current":{"node":"node-2","devices":[[1,1000]]},"releasing":false,"next":null,"placed_at_ms":1795403340506,"held_since_ms":1795403335284,"started_at_ms":1795403342906,"resized_at_ms":1795403335770,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c68a-773b-b617-527d4e790320','01a20660-c68a-773b-b617-527ca92a739f',0,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c697-7581-ae50-8dee4adebcab','01a20660-c697-7581-ae50-8decef146527',1,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403335320,"held_since_ms":1795403335320,"started_at_ms":1795403340377,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c697-7581-ae50-8defed5eee3e','01a20660-c697-7581-ae50-8decef146527',2,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":1795403335320,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c697-7581-ae50-8dedd4f728d4','01a20660-c697-7581-ae50-8decef146527',0,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403335320,"held_since_ms":1795403335320,"started_at_ms":1795403339233,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c6a1-722e-b788-4c1de92093cc','01a20660-c6a1-722e-b788-4c1c2b16c747',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335330,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"port":21015,"ended":"succeeded","last_exit":"exit code 0"}');
INSERT INTO pods VALUES('01a20660-c6c5-749a-8a13-830d0cd34dea','01a20660-c6c5-749a-8a13-830c680da3b6',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335365,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"port":21910,"ended":"failed","last_exit":"exit code 1"}');
INSERT INTO pods VALUES('01a20660-c6e3-7791-91eb-aec831d1abf9','01a20660-c6e3-7791-91eb-aec7a6b8505f',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335395,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c725-729a-bb55-0cab07884f8f','01a20660-c725-729a-bb55-0caa0d4bf7e0',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335461,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c749-7143-81e8-05083941841f','01a20660-c749-7143-81e8-05072c96ee92',0,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c760-7109-a885-9fc3dc982e7e','01a20660-c760-7109-a885-9fc2f40d259a',0,3,'{"current":{"node":"node-1","devices":[[3,250]]},"releasing":false,"next":null,"placed_at_ms":1795403347383,"held_since_ms":1795403335521,"started_at_ms":1795403348224,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c79f-753c-8757-ab693bf51198','01a20660-c79f-753c-8757-ab68c4e91d11',0,2,'{"current":{"node":"node-1","devices":[[1,1000],[2,1000]]},"releasing":false,"next":null,"placed_at_ms":1795403345674,"held_since_ms":1795403345674,"started_at_ms":1795403346947,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c7ce-76c0-98be-05d1768a1fe1','01a20660-c7ce-76c0-98be-05d0ed60a2d9',0,1,'{"current":{"node":"node-2","devices":[[0,500]]},"releasing":false,"next":null,"placed_at_ms":1795403335630,"held_since_ms":1795403335630,"started_at_ms":1795403341187,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c7e7-7064-a115-edd90fae0a1a','01a20660-c7e7-7064-a115-edd8bba0ebf7',0,7,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403409406,"held_since_ms":1795403335656,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":1795403473920,"port":20413,"ended":null,"last_exit":"exit code 1"}');
INSERT INTO pods VALUES('01a20660-c803-74f8-82c2-7d49b239d923','01a20660-c803-74f8-82c2-7d471d44acf9',1,1,'{"current":{"node":"node-2","devices":[[0,200]]},"releasing":false,"next":null,"placed_at_ms":1795403335684,"held_since_ms":1795403335684,"started_at_ms":1795403343463,"resized_at_ms":null,"restart_at_ms":null,"port":24282,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c803-74f8-82c2-7d4a16d50d1f','01a20660-c803-74f8-82c2-7d471d44acf9',2,1,'{"current":{"node":"node-2","devices":[[0,200]]},"releasing":false,"next":null,"placed_at_ms":1795403335684,"held_since_ms":1795403335684,"started_at_ms":1795403342533,"resized_at_ms":null,"restart_at_ms":null,"port":24283,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c803-74f8-82c2-7d4887e7b817','01a20660-c803-74f8-82c2-7d471d44acf9',0,1,'{"current":{"node":"node-2","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403335684,"held_since_ms":1795403335684,"started_at_ms":1795403340823,"resized_at_ms":null,"restart_at_ms":null,"port":24281,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c812-7681-be16-684ee3077cfb','01a20660-c812-7681-be16-684c8c20fed1',1,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403335698,"held_since_ms":1795403335698,"started_at_ms":1795403342921,"resized_at_ms":null,"restart_at_ms":null,"port":25234,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c812-7681-be16-684f532ea356','01a20660-c812-7681-be16-684c8c20fed1',2,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403335698,"held_since_ms":1795403335698,"started_at_ms":1795403341438,"resized_at_ms":null,"restart_at_ms":null,"port":25235,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c812-7681-be16-684dfb60c676','01a20660-c812-7681-be16-684c8c20fed1',0,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403342976,"held_since_ms":1795403335698,"started_at_ms":1795403343696,"resized_at_ms":null,"restart_at_ms":null,"port":25233,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c81d-717d-9934-a686b7599687','01a20660-c81d-717d-9934-a685b547a3d2',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335709,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"port":21938,"ended":null,"last_exit":"killed by signal 15"}');
INSERT INTO pods VALUES('01a20660-c81d-717d-9934-a6870070804a','01a20660-c81d-717d-9934-a685b547a3d2',1,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"parked":true,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c85a-7099-bdef-b55116e32da5','01a20660-c85a-7099-bdef-b550d919f41b',0,1,'{"current":{"node":"node-2","devices":[[2,1000]]},"releasing":false,"next":null,"placed_at_ms":1795403340506,"held_since_ms":1795403340506,"started_at_ms":1795403342956,"resized_at_ms":null,"restart_at_ms":null,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-c8a0-72ff-99e4-6dd48a5d12fc','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef',0,1,'{"current":null,"releasing":false,"next":null,"placed_at_ms":1795403335840,"held_since_ms":null,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"ended":"failed","last_exit":"could not be started: repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server"}');
INSERT INTO pods VALUES('01a20660-e986-7504-a811-51bed1df904d','01a20660-e986-7504-a811-51bd795d8c7d',0,1,'{"current":{"node":"node-1","devices":[]},"releasing":false,"next":null,"placed_at_ms":1795403344263,"held_since_ms":1795403344263,"started_at_ms":1795403344946,"resized_at_ms":null,"restart_at_ms":null,"port":25965,"ended":null,"last_exit":null}');
INSERT INTO pods VALUES('01a20660-e986-7504-a811-51bf804c83e0','01a20660-e986-7504-a811-51bd795d8c7d',1,0,'{"current":null,"releasing":false,"next":null,"placed_at_ms":null,"held_since_ms":1795403344263,"started_at_ms":null,"resized_at_ms":null,"restart_at_ms":null,"parked":true,"ended":null,"last_exit":null}');
CREATE TABLE events (
    seq           INTEGER NOT NULL PRIMARY KEY,
    at            INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    warning       INTEGER NOT NULL,
    project_id    INTEGER,
    project_name  TEXT NOT NULL,
    workload_id   TEXT,
    workload_name TEXT NOT NULL,
    pod_name      TEXT,
    code          TEXT,
    message       TEXT NOT NULL
) STRICT;
INSERT INTO events VALUES(1,1795403334687,'ProjectCreated',0,1,'team-a',NULL,'',NULL,NULL,'created with a quota of 2 GPU(s)');
INSERT INTO events VALUES(2,1795403334694,'ProjectCreated',0,2,'team-b',NULL,'',NULL,NULL,'created with a quota of 1.5 GPU(s)');
INSERT INTO events VALUES(3,1795403334699,'ProjectCreated',0,3,'team-c',NULL,'',NULL,NULL,'created with a quota of 0 GPU(s)');
INSERT INTO events VALUES(4,1795403334705,'ProjectCreated',0,4,'closed',NULL,'',NULL,NULL,'created with a quota of 1 GPU(s)');
INSERT INTO events VALUES(5,1795403334712,'ProjectDeleted',0,4,'closed',NULL,'',NULL,NULL,'deleted');
INSERT INTO events VALUES(6,1795403335209,'Submitted',0,1,'team-a','01a20660-c628-73ae-ac8d-c343d65dcff4','whole',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(7,1795403335209,'Scheduled',0,1,'team-a','01a20660-c628-73ae-ac8d-c343d65dcff4','whole','whole-0-1',NULL,'placed on node-1, GPU 0');
INSERT INTO events VALUES(8,1795403335221,'Submitted',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(9,1795403335221,'Scheduled',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-1',NULL,'placed on node-1, 0.25 of GPU 1');
INSERT INTO events VALUES(10,1795403335232,'Submitted',0,2,'team-b','01a20660-c63f-7540-ba35-8a7757acff41','memory',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(11,1795403335232,'Scheduled',0,2,'team-b','01a20660-c63f-7540-ba35-8a7757acff41','memory','memory-0-1',NULL,'placed on node-2, 0.094 of GPU 0');
INSERT INTO events VALUES(12,1795403335253,'Submitted',0,1,'team-a','01a20660-c654-73e7-9667-c48d89501c38','migs',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(13,1795403335253,'Pending',0,1,'team-a','01a20660-c654-73e7-9667-c48d89501c38','migs',NULL,'P101','asks for 2 × 1g.5gb on one node; none of the 2 node(s) has that');
INSERT INTO events VALUES(14,1795403335284,'Submitted',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(15,1795403335284,'Scheduled',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic','elastic-0-1',NULL,'placed on node-2, GPU 1 and GPU 2');
INSERT INTO events VALUES(16,1795403335306,'Submitted',0,1,'team-a','01a20660-c68a-773b-b617-527ca92a739f','too-large',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(17,1795403335306,'Pending',0,1,'team-a','01a20660-c68a-773b-b617-527ca92a739f','too-large',NULL,'P201','team-a in pool default may hold 3.5 GPUs and holds 1.25; 64 more would pass its limit; asks for 64 GPUs on one node; the largest node has 4');
INSERT INTO events VALUES(18,1795403335320,'Submitted',0,1,'team-a','01a20660-c697-7581-ae50-8decef146527','many',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(19,1795403335320,'Scheduled',0,1,'team-a','01a20660-c697-7581-ae50-8decef146527','many','many-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(20,1795403335320,'Scheduled',0,1,'team-a','01a20660-c697-7581-ae50-8decef146527','many','many-1-1',NULL,'placed on node-1');
INSERT INTO events VALUES(21,1795403335330,'Submitted',0,1,'team-a','01a20660-c6a1-722e-b788-4c1c2b16c747','good',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(22,1795403335330,'Scheduled',0,1,'team-a','01a20660-c6a1-722e-b788-4c1c2b16c747','good','good-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(23,1795403335365,'Submitted',0,1,'team-a','01a20660-c6c5-749a-8a13-830c680da3b6','bad',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(24,1795403335365,'Scheduled',0,1,'team-a','01a20660-c6c5-749a-8a13-830c680da3b6','bad','bad-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(25,1795403335395,'Submitted',0,1,'team-a','01a20660-c6e3-7791-91eb-aec7a6b8505f','gone',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(26,1795403335395,'Scheduled',0,1,'team-a','01a20660-c6e3-7791-91eb-aec7a6b8505f','gone','gone-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(27,1795403335461,'Submitted',0,2,'team-b','01a20660-c725-729a-bb55-0caa0d4bf7e0','stopped',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(28,1795403335461,'Scheduled',0,2,'team-b','01a20660-c725-729a-bb55-0caa0d4bf7e0','stopped','stopped-0-1',NULL,'placed on node-2, GPU 3');
INSERT INTO events VALUES(29,1795403335498,'Submitted',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(30,1795403335498,'Pending',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,'P202','non-preemptible workloads stay within the quota: team-b in pool big has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; submit it as preemptible to go over quota; needs 1 GPU; every GPU of the 1 node(s) is in use; of 2 node(s) 1 outside its node affinity');
INSERT INTO events VALUES(31,1795403335521,'Submitted',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(32,1795403335521,'Scheduled',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-1',NULL,'placed on node-1, 0.25 of GPU 1');
INSERT INTO events VALUES(33,1795403335583,'Submitted',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(34,1795403335583,'Scheduled',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-1',NULL,'placed on node-1, GPU 2 and GPU 3');
INSERT INTO events VALUES(35,1795403335583,'Pending',0,1,'team-a','01a20660-c654-73e7-9667-c48d89501c38','migs',NULL,'P201','team-a in pool default may hold 3.5 GPUs and holds 3.5; 0.284 more would pass its limit; asks for 2 × 1g.5gb on one node; none of the 2 node(s) has that');
INSERT INTO events VALUES(36,1795403335583,'Pending',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,'P201','department:research in pool default may hold 4 GPUs and holds 3.5; 1 more would pass its limit; non-preemptible workloads stay within the quota: team-b in pool big has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; submit it as preemptible to go over quota; needs 1 GPU; every GPU of the 1 node(s) is in use; of 2 node(s) 1 outside its node affinity');
INSERT INTO events VALUES(37,1795403335630,'Submitted',0,1,'team-a','01a20660-c7ce-76c0-98be-05d0ed60a2d9','notebook',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(38,1795403335630,'Scheduled',0,1,'team-a','01a20660-c7ce-76c0-98be-05d0ed60a2d9','notebook','notebook-0-1',NULL,'placed on node-2, 0.5 of GPU 0');
INSERT INTO events VALUES(39,1795403335656,'Submitted',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(40,1795403335656,'Scheduled',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(41,1795403335684,'Submitted',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(42,1795403335684,'Scheduled',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-master-0',NULL,'placed on node-2');
INSERT INTO events VALUES(43,1795403335684,'Scheduled',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-worker-0',NULL,'placed on node-2, 0.2 of GPU 0');
INSERT INTO events VALUES(44,1795403335684,'Scheduled',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-worker-1',NULL,'placed on node-2, 0.2 of GPU 0');
INSERT INTO events VALUES(45,1795403335698,'Submitted',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(46,1795403335698,'Scheduled',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-master-0',NULL,'placed on node-1');
INSERT INTO events VALUES(47,1795403335698,'Scheduled',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-worker-0',NULL,'placed on node-1');
INSERT INTO events VALUES(48,1795403335698,'Scheduled',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-worker-1',NULL,'placed on node-1');
INSERT INTO events VALUES(49,1795403335709,'Submitted',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(50,1795403335709,'RevisionCreated',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.1',NULL,NULL,'revision 1 begins with 1 replica');
INSERT INTO events VALUES(51,1795403335709,'Scheduled',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.1','svc.1-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(52,1795403335770,'Submitted',0,3,'team-c','01a20660-c85a-7099-bdef-b550d919f41b','manifest',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(53,1795403335770,'Resized',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic','elastic-0-1','E104','shrunk from 2 to 1 GPU(s) for team-c/manifest');
INSERT INTO events VALUES(54,1795403335770,'Reserved',0,3,'team-c','01a20660-c85a-7099-bdef-b550d919f41b','manifest','manifest-0-0',NULL,'node-2, GPU 2 is being freed for it');
INSERT INTO events VALUES(55,1795403335770,'Pending',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic',NULL,'P301','goes on at node-2 as soon as its last run has stopped');
INSERT INTO events VALUES(56,1795403335770,'Pending',0,3,'team-c','01a20660-c85a-7099-bdef-b550d919f41b','manifest',NULL,'P301','has a place on node-2, which is being freed by elastic');
INSERT INTO events VALUES(57,1795403335840,'Submitted',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around',NULL,NULL,'accepted from root');
INSERT INTO events VALUES(58,1795403335840,'Scheduled',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(59,1795403335866,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'copying repository `http://127.0.0.1:1/x`');
INSERT INTO events VALUES(60,1795403336133,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server; trying again in 1 s');
INSERT INTO events VALUES(61,1795403337134,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'copying repository `http://127.0.0.1:1/x`');
INSERT INTO events VALUES(62,1795403337213,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server; trying again in 4 s');
INSERT INTO events VALUES(63,1795403339252,'Started',0,1,'team-a','01a20660-c697-7581-ae50-8decef146527','many','many-0-1',NULL,'its process runs');
INSERT INTO events VALUES(64,1795403339252,'Started',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic','elastic-0-1',NULL,'its process runs');
INSERT INTO events VALUES(65,1795403339787,'Started',0,1,'team-a','01a20660-c6e3-7791-91eb-aec7a6b8505f','gone','gone-0-1',NULL,'its process runs');
INSERT INTO events VALUES(66,1795403339995,'Started',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-1',NULL,'its process runs');
INSERT INTO events VALUES(67,1795403340166,'Started',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-1',NULL,'its process runs');
INSERT INTO events VALUES(68,1795403340332,'Started',0,1,'team-a','01a20660-c628-73ae-ac8d-c343d65dcff4','whole','whole-0-1',NULL,'its process runs');
INSERT INTO events VALUES(69,1795403340378,'Started',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-1',NULL,'its process runs');
INSERT INTO events VALUES(70,1795403340420,'Started',0,1,'team-a','01a20660-c697-7581-ae50-8decef146527','many','many-1-1',NULL,'its process runs');
INSERT INTO events VALUES(71,1795403340506,'Scheduled',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic','elastic-0-2',NULL,'placed on node-2, GPU 1');
INSERT INTO events VALUES(72,1795403340506,'Scheduled',0,3,'team-c','01a20660-c85a-7099-bdef-b550d919f41b','manifest','manifest-0-1',NULL,'placed on node-2, GPU 2');
INSERT INTO events VALUES(73,1795403340554,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-1',NULL,'its process runs');
INSERT INTO events VALUES(74,1795403340554,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-1',NULL,'exit code 1');
INSERT INTO events VALUES(75,1795403340554,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-1',NULL,'starts again in its place in 1 s');
INSERT INTO events VALUES(76,1795403340952,'Started',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-master-0',NULL,'its process runs');
INSERT INTO events VALUES(77,1795403341260,'Started',0,2,'team-b','01a20660-c725-729a-bb55-0caa0d4bf7e0','stopped','stopped-0-1',NULL,'its process runs');
INSERT INTO events VALUES(78,1795403341260,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'copying repository `http://127.0.0.1:1/x`');
INSERT INTO events VALUES(79,1795403341260,'Started',0,1,'team-a','01a20660-c7ce-76c0-98be-05d0ed60a2d9','notebook','notebook-0-1',NULL,'its process runs');
INSERT INTO events VALUES(80,1795403341320,'Started',0,2,'team-b','01a20660-c63f-7540-ba35-8a7757acff41','memory','memory-0-1',NULL,'its process runs');
INSERT INTO events VALUES(81,1795403341353,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server; trying again in 10 s');
INSERT INTO events VALUES(82,1795403341399,'Started',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.1','svc.1-0-1',NULL,'its process runs');
INSERT INTO events VALUES(83,1795403341458,'Started',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-worker-1',NULL,'its process runs');
INSERT INTO events VALUES(84,1795403341806,'Started',0,1,'team-a','01a20660-c6c5-749a-8a13-830c680da3b6','bad','bad-0-1',NULL,'its process runs');
INSERT INTO events VALUES(85,1795403341806,'Exited',1,1,'team-a','01a20660-c6c5-749a-8a13-830c680da3b6','bad','bad-0-1',NULL,'exit code 1');
INSERT INTO events VALUES(86,1795403341806,'Failed',1,1,'team-a','01a20660-c6c5-749a-8a13-830c680da3b6','bad',NULL,NULL,'failed for good: exit code 1');
INSERT INTO events VALUES(87,1795403341823,'Started',0,1,'team-a','01a20660-c6a1-722e-b788-4c1c2b16c747','good','good-0-1',NULL,'its process runs');
INSERT INTO events VALUES(88,1795403341823,'Exited',0,1,'team-a','01a20660-c6a1-722e-b788-4c1c2b16c747','good','good-0-1',NULL,'exit code 0');
INSERT INTO events VALUES(89,1795403341823,'Completed',0,1,'team-a','01a20660-c6a1-722e-b788-4c1c2b16c747','good',NULL,NULL,'ended well');
INSERT INTO events VALUES(90,1795403342555,'Started',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-worker-1',NULL,'its process runs');
INSERT INTO events VALUES(91,1795403342976,'Started',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-worker-0',NULL,'its process runs');
INSERT INTO events VALUES(92,1795403342976,'Started',0,1,'team-a','01a20660-c674-73b2-ba93-d6866e7ac7bd','elastic','elastic-0-2',NULL,'its process runs');
INSERT INTO events VALUES(93,1795403343006,'Started',0,3,'team-c','01a20660-c85a-7099-bdef-b550d919f41b','manifest','manifest-0-1',NULL,'its process runs');
INSERT INTO events VALUES(94,1795403343154,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-2',NULL,'its process runs');
INSERT INTO events VALUES(95,1795403343154,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-2',NULL,'exit code 1');
INSERT INTO events VALUES(96,1795403343154,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-2',NULL,'starts again in its place in 2 s');
INSERT INTO events VALUES(97,1795403343480,'Started',0,1,'team-a','01a20660-c803-74f8-82c2-7d471d44acf9','torch','torch-worker-0',NULL,'its process runs');
INSERT INTO events VALUES(98,1795403343707,'Started',0,3,'team-c','01a20660-c812-7681-be16-684c8c20fed1','mpi','mpi-master-0',NULL,'its process runs');
INSERT INTO events VALUES(99,1795403343808,'Suspended',0,2,'team-b','01a20660-c725-729a-bb55-0caa0d4bf7e0','stopped',NULL,NULL,'root asked to suspend it');
INSERT INTO events VALUES(100,1795403343808,'Pending',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,'P201','department:research in pool default may hold 4 GPUs and holds 3.5; 1 more would pass its limit; non-preemptible workloads stay within the quota: team-b in pool big has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; submit it as preemptible to go over quota; of 2 node(s) 1 outside its node affinity');
INSERT INTO events VALUES(101,1795403344042,'Deleting',0,1,'team-a','01a20660-c6e3-7791-91eb-aec7a6b8505f','gone',NULL,NULL,'root asked for its deletion');
INSERT INTO events VALUES(102,1795403344199,'Deleted',0,1,'team-a','01a20660-c6e3-7791-91eb-aec7a6b8505f','gone',NULL,NULL,'deleted');
INSERT INTO events VALUES(103,1795403344263,'Updated',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc',NULL,NULL,'root changed it');
INSERT INTO events VALUES(104,1795403344263,'RevisionCreated',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.2',NULL,NULL,'revision 2 begins with 1 replica');
INSERT INTO events VALUES(105,1795403344263,'Scheduled',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.2','svc.2-0-1',NULL,'placed on node-1');
INSERT INTO events VALUES(106,1795403344277,'RevisionRetired',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.1',NULL,NULL,'revision 1 has served; a newer one answers now');
INSERT INTO events VALUES(107,1795403344962,'Started',0,1,'team-a','01a20660-c81d-717d-9934-a6842eeffec2','svc.2','svc.2-0-1',NULL,'its process runs');
INSERT INTO events VALUES(108,1795403345084,'GpuLost',1,NULL,'',NULL,'',NULL,'E207','GPU 3 of node-1 is lost: it was made to fail (simulated)');
INSERT INTO events VALUES(109,1795403345084,'Evicted',1,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-1','E207','GPU 3 of node-1, which it used, is lost: it was made to fail (simulated)');
INSERT INTO events VALUES(110,1795403345084,'Moved',1,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-1','E103','moved so that team-a/from-template finds its GPUs together on one node; goes on at node-2, 0.25 of GPU 3');
INSERT INTO events VALUES(111,1795403345084,'Moved',1,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-1','E103','moved so that team-a/from-template finds its GPUs together on one node; goes on at node-2, 0.25 of GPU 3');
INSERT INTO events VALUES(112,1795403345084,'Reserved',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-1',NULL,'node-1, GPU 1 and GPU 2 is being freed for it');
INSERT INTO events VALUES(113,1795403345084,'Pending',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share',NULL,'P301','has a place on node-2, which is being freed by from-assets');
INSERT INTO events VALUES(114,1795403345084,'Pending',0,1,'team-a','01a20660-c654-73e7-9667-c48d89501c38','migs',NULL,'P101','asks for 2 × 1g.5gb on one node; none of the 2 node(s) has that');
INSERT INTO events VALUES(115,1795403345084,'Pending',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,'P202','non-preemptible workloads stay within the quota: team-b in pool big has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; submit it as preemptible to go over quota; needs 1 GPU; every GPU of the 1 node(s) is in use; of 2 node(s) 1 outside its node affinity');
INSERT INTO events VALUES(116,1795403345084,'Pending',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets',NULL,'P301','has a place on node-2, which is being freed by share');
INSERT INTO events VALUES(117,1795403345084,'Pending',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template',NULL,'P301','has a place on node-1, which is being freed by from-assets, share');
INSERT INTO events VALUES(118,1795403345482,'Scheduled',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-2',NULL,'placed on node-2, 0.25 of GPU 3');
INSERT INTO events VALUES(119,1795403345674,'Scheduled',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-2',NULL,'placed on node-2, 0.25 of GPU 3');
INSERT INTO events VALUES(120,1795403345674,'Scheduled',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-2',NULL,'placed on node-1, GPU 1 and GPU 2');
INSERT INTO events VALUES(121,1795403346776,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-3',NULL,'its process runs');
INSERT INTO events VALUES(122,1795403346776,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-3',NULL,'exit code 1');
INSERT INTO events VALUES(123,1795403346776,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-3',NULL,'starts again in its place in 4 s');
INSERT INTO events VALUES(124,1795403346837,'Started',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-2',NULL,'its process runs');
INSERT INTO events VALUES(125,1795403346964,'Started',0,1,'team-a','01a20660-c79f-753c-8757-ab68c4e91d11','from-template','from-template-0-2',NULL,'its process runs');
INSERT INTO events VALUES(126,1795403347035,'Started',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-2',NULL,'its process runs');
INSERT INTO events VALUES(127,1795403347101,'GpuBack',0,NULL,'',NULL,'',NULL,'E207','GPU 3 of node-1 is in service again');
INSERT INTO events VALUES(128,1795403347112,'GpuLost',1,NULL,'',NULL,'',NULL,'E207','GPU 3 of node-2 is lost: it was made to fail (simulated)');
INSERT INTO events VALUES(129,1795403347112,'Evicted',1,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-2','E207','GPU 3 of node-2, which it used, is lost: it was made to fail (simulated)');
INSERT INTO events VALUES(130,1795403347112,'Evicted',1,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-2','E207','GPU 3 of node-2, which it used, is lost: it was made to fail (simulated)');
INSERT INTO events VALUES(131,1795403347112,'Reserved',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-2',NULL,'node-1, 0.25 of GPU 3 is being freed for it');
INSERT INTO events VALUES(132,1795403347112,'Reserved',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-2',NULL,'node-1, 0.25 of GPU 3 is being freed for it');
INSERT INTO events VALUES(133,1795403347112,'Pending',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share',NULL,'P301','has a place on node-1, which is being freed by from-assets');
INSERT INTO events VALUES(134,1795403347112,'Pending',0,1,'team-a','01a20660-c654-73e7-9667-c48d89501c38','migs',NULL,'P201','team-a in pool default may hold 3.5 GPUs and holds 3.5; 0.284 more would pass its limit; asks for 2 × 1g.5gb on one node; none of the 2 node(s) has that');
INSERT INTO events VALUES(135,1795403347112,'Pending',0,2,'team-b','01a20660-c749-7143-81e8-05072c96ee92','placed',NULL,'P201','department:research in pool default may hold 4 GPUs and holds 3.5; 1 more would pass its limit; non-preemptible workloads stay within the quota: team-b in pool big has a quota of 0 GPUs, its non-preemptible workloads hold 0, this one asks for 1; submit it as preemptible to go over quota; needs 1 GPU; every GPU of the 1 node(s) is in use; 1 GPU of 4 is out of service: GPU 3 of node-2; `runai describe node node-2` says why; of 2 node(s) 1 outside its node affinity');
INSERT INTO events VALUES(136,1795403347112,'Pending',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets',NULL,'P301','has a place on node-1, which is being freed by share');
INSERT INTO events VALUES(137,1795403347340,'Scheduled',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-3',NULL,'placed on node-1, 0.25 of GPU 3');
INSERT INTO events VALUES(138,1795403347383,'Scheduled',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-3',NULL,'placed on node-1, 0.25 of GPU 3');
INSERT INTO events VALUES(139,1795403348112,'Started',0,1,'team-a','01a20660-c635-740b-896c-32e26e3da03c','share','share-0-3',NULL,'its process runs');
INSERT INTO events VALUES(140,1795403348243,'Started',0,1,'team-a','01a20660-c760-7109-a885-9fc2f40d259a','from-assets','from-assets-0-3',NULL,'its process runs');
INSERT INTO events VALUES(141,1795403351360,'Preparing',0,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'copying repository `http://127.0.0.1:1/x`');
INSERT INTO events VALUES(142,1795403351517,'Exited',1,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around','around-0-1',NULL,'could not be started: repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server');
INSERT INTO events VALUES(143,1795403351517,'Failed',1,1,'team-a','01a20660-c8a0-72ff-99e4-6dd3f48bf6ef','around',NULL,NULL,'failed for good: could not be started: repository `http://127.0.0.1:1/x` cannot be copied: unable to access ''http://127.0.0.1:1/x/'': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn''t connect to server');
INSERT INTO events VALUES(144,1795403351903,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-4',NULL,'its process runs');
INSERT INTO events VALUES(145,1795403351903,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-4',NULL,'exit code 1');
INSERT INTO events VALUES(146,1795403351903,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-4',NULL,'starts again in its place in 8 s');
INSERT INTO events VALUES(147,1795403360962,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-5',NULL,'its process runs');
INSERT INTO events VALUES(148,1795403360962,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-5',NULL,'exit code 1');
INSERT INTO events VALUES(149,1795403360962,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-5',NULL,'starts again in its place in 16 s');
INSERT INTO events VALUES(150,1795403377401,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-6',NULL,'its process runs');
INSERT INTO events VALUES(151,1795403377401,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-6',NULL,'exit code 1');
INSERT INTO events VALUES(152,1795403377401,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-6',NULL,'starts again in its place in 32 s');
INSERT INTO events VALUES(153,1795403409920,'Started',0,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-7',NULL,'its process runs');
INSERT INTO events VALUES(154,1795403409920,'Exited',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-7',NULL,'exit code 1');
INSERT INTO events VALUES(155,1795403409920,'BackOff',1,1,'team-a','01a20660-c7e7-7064-a115-edd8bba0ebf7','crashing','crashing-0-7',NULL,'starts again in its place in 64 s');
CREATE TABLE credentials (
    client_id     TEXT NOT NULL PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    subject       TEXT NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;
INSERT INTO credentials VALUES('elastane-admin','2a0a6bbaf63146fb0d904a8fc371761306608ff150f28ab4ee7ba8cc487e7659','elastane-admin',1795403334533);
CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    what   TEXT NOT NULL,
    target TEXT NOT NULL,
    result TEXT NOT NULL
, detail TEXT NOT NULL DEFAULT '{}') STRICT;
INSERT INTO audit VALUES(1,1795403334630,'root','network-topology.create','net','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/network-topologies","request_id":"60ea4e35-c8af-4d9d-8a2a-83cbfcba4456","target_id":"01a20660-c3e6-71ad-9502-79d0c8a3f8cc"}');
INSERT INTO audit VALUES(2,1795403334637,'root','node-pool.update','default','ok','{"source_ip":"127.0.0.1","method":"PATCH","path":"/api/v1/node-pools/1","request_id":"3579bc27-c957-43e2-af88-4eefc3b11d72","target_id":"1"}');
INSERT INTO audit VALUES(3,1795403334644,'root','node.label','node-2','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/nodes/node-2/labels","request_id":"ae94394f-1833-4857-9c5d-424401ac6fec","target_id":"node-2"}');
INSERT INTO audit VALUES(4,1795403334650,'root','node.label','node-1','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/nodes/node-1/labels","request_id":"43478d98-250b-4ca9-a5f7-6f22da853c49","target_id":"node-1"}');
INSERT INTO audit VALUES(5,1795403334656,'root','node-pool.create','big','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/node-pools","request_id":"ed2bd4a0-8fce-410c-bd0c-0933f272db25","target_id":"01a20660-c3ff-7666-955d-9bb0c52bd2c9"}');
INSERT INTO audit VALUES(6,1795403334663,'root','department.create','research','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/departments","request_id":"508e3aba-acd7-4b50-a37a-9e42e8225e52","target_id":"2"}');
INSERT INTO audit VALUES(7,1795403334669,'root','department.create','idle','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/departments","request_id":"d7da5673-9a78-491c-96d9-e99274433ee0","target_id":"3"}');
INSERT INTO audit VALUES(8,1795403334675,'root','department.create','closed','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/departments","request_id":"387debfb-dc6b-4f38-8ae6-6c7ff053ceb8","target_id":"4"}');
INSERT INTO audit VALUES(9,1795403334680,'root','department.delete','closed','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/api/v1/org-unit/departments/4","request_id":"f13d2713-1d38-4a91-bc9c-14d25674a491","target_id":"4"}');
INSERT INTO audit VALUES(10,1795403334687,'root','project.create','team-a','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/projects","request_id":"e450fb50-04c0-4f05-9aad-04f5b9c22a75","target_id":"1"}');
INSERT INTO audit VALUES(11,1795403334694,'root','project.create','team-b','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/projects","request_id":"07b88dbd-3901-4046-ac0a-3e63f2e9b40e","target_id":"2"}');
INSERT INTO audit VALUES(12,1795403334699,'root','project.create','team-c','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/projects","request_id":"0e415a58-a734-47c6-b1e6-201d929d3ba4","target_id":"3"}');
INSERT INTO audit VALUES(13,1795403334705,'root','project.create','closed','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/org-unit/projects","request_id":"ecddd63f-59a3-4382-b61b-9efa02bc1f1e","target_id":"4"}');
INSERT INTO audit VALUES(14,1795403334712,'root','project.delete','closed','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/api/v1/org-unit/projects/4","request_id":"d63cd3dd-93ac-4a1f-9e03-ee2a49fce7b7","target_id":"4"}');
INSERT INTO audit VALUES(15,1795403334748,'root','user.create','ann@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/users","request_id":"4633c42e-351d-4076-b3c1-84663cd51ad2","target_id":"01a20660-c45b-77ec-b329-ebbdf42c186a"}');
INSERT INTO audit VALUES(16,1795403334783,'ann@example.org','session.create','a406cf8b-7a4f-40a5-9220-0b25ca94e7e5','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"21426c3e-1fb0-4cb4-96eb-175ff1abd169","target_id":"01a20660-c47e-709b-86e5-422ac11e85ef"}');
INSERT INTO audit VALUES(17,1795403334788,'ann@example.org','login.create','ann@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"21426c3e-1fb0-4cb4-96eb-175ff1abd169","target_id":"01a20660-c483-73c7-bc1e-1349dc777269"}');
INSERT INTO audit VALUES(18,1795403334814,'root','user.create','ben@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/users","request_id":"ecd2eb5f-e834-48e9-8e54-1c75f27087a2","target_id":"01a20660-c49d-70dd-a6ec-fc6dc6d4dffe"}');
INSERT INTO audit VALUES(19,1795403334849,'ben@example.org','session.create','9e8d469a-f84d-4265-854d-c8dd0d8bbc70','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"83bd1f1e-b280-413a-b23e-2b1eb4331917","target_id":"01a20660-c4c1-7466-a96b-ca9b23ef3251"}');
INSERT INTO audit VALUES(20,1795403334855,'ben@example.org','login.create','ben@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"83bd1f1e-b280-413a-b23e-2b1eb4331917","target_id":"01a20660-c4c6-759b-9e90-d92de530787c"}');
INSERT INTO audit VALUES(21,1795403334892,'root','user.create','leaver@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/users","request_id":"ec6ac093-4929-4de0-bfd5-e1b77c3e56a3","target_id":"01a20660-c4eb-7612-8382-6ff0d7a253d2"}');
INSERT INTO audit VALUES(22,1795403334928,'leaver@example.org','session.create','d20511f9-7ee9-40be-888a-7e2f1737acd1','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"aa022038-1cf1-4e05-8d09-6052d8066941","target_id":"01a20660-c510-77aa-86dd-ea994a22dac2"}');
INSERT INTO audit VALUES(23,1795403334934,'leaver@example.org','login.create','leaver@example.org','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"aa022038-1cf1-4e05-8d09-6052d8066941","target_id":"01a20660-c515-7454-9da3-614cb64c2593"}');
INSERT INTO audit VALUES(24,1795403334941,'root','service-account.create','ci','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/service-accounts","request_id":"77178590-5da6-493c-b57d-d589392ada68","target_id":"01a20660-c51c-73fa-be64-13ce829e162b"}');
INSERT INTO audit VALUES(25,1795403334947,'root','access-rule.create','Research manager','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/authorization/access-rules","request_id":"4bce11bc-6808-4efa-b5e7-33fefad18b33","target_id":"15"}');
INSERT INTO audit VALUES(26,1795403334953,'root','access-rule.create','Editor','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/authorization/access-rules","request_id":"6f261277-eaf7-4fe9-aaf4-973ed6d469b3","target_id":"16"}');
INSERT INTO audit VALUES(27,1795403334961,'root','access-rule.create','System administrator','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/authorization/access-rules","request_id":"64da1414-a147-4487-ac6e-080460956acb","target_id":"17"}');
INSERT INTO audit VALUES(28,1795403334967,'root','access-rule.create','Research manager','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/authorization/access-rules","request_id":"1eb9cfb6-6436-4d23-a3d4-4b80854e12b0","target_id":"18"}');
INSERT INTO audit VALUES(29,1795403334971,'root','access-rule.delete','Research manager','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/api/v1/authorization/access-rules/18","request_id":"944995b9-4286-40e8-9b08-db4443558cba","target_id":"18"}');
INSERT INTO audit VALUES(30,1795403334977,'ci','login.create','ci','ok','{"by_program":true,"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/token","request_id":"93dfc13b-c6e4-4ac8-8b3c-891d54d83427","target_id":"01a20660-c540-722a-bd15-d36b30a2e35e"}');
INSERT INTO audit VALUES(31,1795403334983,'leaver@example.org','access-key.create','laptop','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/access-keys","request_id":"09bf724a-44e1-4dc3-be16-ca5432ee8539","target_id":"01a20660-c546-7223-91fd-2bc6fe576c61"}');
INSERT INTO audit VALUES(32,1795403334989,'','request','/api/v1/users','the token is malformed; get a new one','{"source_ip":"127.0.0.1","method":"GET","path":"/api/v1/users","request_id":"3a4b9a6e-64ff-42a1-8792-f109b3da62b0","status":401}');
INSERT INTO audit VALUES(33,1795403334989,'root','gpu-prices.create','prices','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/usage/prices","request_id":"437b4616-ca48-4062-b773-38addd23e112","target_id":"01a20660-c54d-7208-9f82-544c65355d08"}');
INSERT INTO audit VALUES(34,1795403334995,'root','workload-type.create','RayJob.ray.io','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workload-types","request_id":"5b70f2db-9be5-4f6b-81e2-0720aaddf7e4","target_id":"01a20660-c553-77c5-92b5-153d6936156d"}');
INSERT INTO audit VALUES(35,1795403335002,'root','compute-asset.create','two-gpus','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/compute","request_id":"02d5a313-95a5-4b3b-83ba-dc5a25624f39","target_id":"01a20660-c559-752b-9199-620fd4ae2604"}');
INSERT INTO audit VALUES(36,1795403335008,'root','compute-asset.create','quarter','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/compute","request_id":"4f92f162-f884-4af4-b80c-a21c986eec59","target_id":"01a20660-c55f-72b7-a549-4b5e0655effc"}');
INSERT INTO audit VALUES(37,1795403335014,'root','environment-asset.create','shell','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/environment","request_id":"7b85faf4-c64d-4ff5-89ae-974badeb5e83","target_id":"01a20660-c566-7466-919a-a8992d21eef5"}');
INSERT INTO audit VALUES(38,1795403335025,'root','nfs-asset.create','nas','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/nfs","request_id":"b0847335-8de0-452c-8fab-a80732df5e91","target_id":"01a20660-c570-7123-87e7-302f8e674dd2"}');
INSERT INTO audit VALUES(39,1795403335031,'root','pvc-asset.create','claim','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/pvc","request_id":"3b14c9d5-b23d-4a82-8a95-7164b8623a5b","target_id":"01a20660-c577-7120-ad01-1a046b9158be"}');
INSERT INTO audit VALUES(40,1795403335037,'root','s3-asset.create','bucket','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/s3","request_id":"da3edc55-a920-4a56-b2ba-79f0fdc7186b","target_id":"01a20660-c57d-7060-82e3-5d0f2dfa716e"}');
INSERT INTO audit VALUES(41,1795403335048,'root','git-asset.create','code','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/git","request_id":"3d50d1ec-9a01-4a27-9508-df6da4b51e57","target_id":"01a20660-c587-7734-8e1f-129c0bcc838b"}');
INSERT INTO audit VALUES(42,1795403335056,'root','host-path-asset.create','host','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/host-path","request_id":"7306b50e-9a33-4315-8d11-ae70b1861ee2","target_id":"01a20660-c590-715a-9f4c-f061fa32189b"}');
INSERT INTO audit VALUES(43,1795403335062,'root','config-map-asset.create','settings','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/config-map","request_id":"cb9cca7f-2f92-47c2-91dd-d2e6164f0f22","target_id":"01a20660-c595-717d-ad45-45a2dbaa8ee7"}');
INSERT INTO audit VALUES(44,1795403335072,'root','password-asset.create','login','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/credentials/password","request_id":"f5994f61-6d0c-4ef4-8373-c15f9a1adc68","target_id":"01a20660-c59b-71c6-8ff2-94f8343634b9"}');
INSERT INTO audit VALUES(45,1795403335078,'root','access-key-asset.create','s3-key','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/credentials/access-key","request_id":"62cd40a9-396e-4e12-afa6-4af46f029f44","target_id":"01a20660-c5a2-70de-8e62-27320347bf71"}');
INSERT INTO audit VALUES(46,1795403335089,'root','docker-registry-asset.create','registry','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/credentials/docker-registry","request_id":"3cf08d6b-2a24-4b81-a8d5-a9b72e8efa94","target_id":"01a20660-c5ad-71cb-8a86-cb21e091e694"}');
INSERT INTO audit VALUES(47,1795403335103,'root','generic-secret-asset.create','generic','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/credentials/generic-secret","request_id":"c77a623b-a1ca-4034-8dbd-e93c48dbc2a1","target_id":"01a20660-c5b6-7206-b613-264e2099f33a"}');
INSERT INTO audit VALUES(48,1795403335112,'root','ngc-api-key-asset.create','ngc','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/credentials/ngc-api-key","request_id":"c308c011-4900-4398-b499-b3ca881e7454","target_id":"01a20660-c5c4-7232-a14f-45545c22c11c"}');
INSERT INTO audit VALUES(49,1795403335119,'root','secret-asset.create','secret-files','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/secrets","request_id":"dd518caf-4681-4965-946f-878fd12cca1c","target_id":"01a20660-c5ce-7184-817e-f6a05d3ebbc0"}');
INSERT INTO audit VALUES(50,1795403335125,'root','nfs-asset.create','old-nas','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/asset/datasource/nfs","request_id":"d0485532-70c4-4fdc-a030-0d54e2a0a77a","target_id":"01a20660-c5d4-74b3-9fc8-a078e5d93bfe"}');
INSERT INTO audit VALUES(51,1795403335130,'root','nfs-asset.delete','old-nas','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/api/v1/asset/datasource/nfs/01a20660-c5d4-74b3-9fc8-a078e5d93bfe","request_id":"8e772ce6-2467-4792-bf2e-93d74b2187a8","target_id":"01a20660-c5d4-74b3-9fc8-a078e5d93bfe"}');
INSERT INTO audit VALUES(52,1795403335137,'root','config-map.create','conf','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/projects/1/config-maps/conf","request_id":"bdce415c-49f3-4140-bc3c-9fc00f207e0e","target_id":"01a20660-c5e0-756c-a80c-cac0c0f4897d"}');
INSERT INTO audit VALUES(53,1795403335143,'root','config-map.create','other','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/projects/1/config-maps/other","request_id":"4b8d8fee-4dd7-4d00-bf38-d036e240e28f","target_id":"01a20660-c5e6-72b9-a2ae-a4e031e58672"}');
INSERT INTO audit VALUES(54,1795403335150,'root','template.create','t-trainings','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workload-templates/trainings","request_id":"d6257414-604a-40f2-a8e1-23b1e7f04d72","target_id":"01a20660-c5ed-74d0-9f73-626a676eb934"}');
INSERT INTO audit VALUES(55,1795403335156,'root','template.create','t-workspaces','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workload-templates/workspaces","request_id":"aaf36dba-ccf2-4b55-b24d-3136308ad329","target_id":"01a20660-c5f4-74d4-9dbc-9136d8f013d5"}');
INSERT INTO audit VALUES(56,1795403335166,'root','template.create','t-distributed','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workload-templates/distributed","request_id":"db218d0c-24a3-455e-9eef-4bba54c1820c","target_id":"01a20660-c5fd-7082-9c8e-1d5c4d9e000f"}');
INSERT INTO audit VALUES(57,1795403335172,'root','template.create','t-inferences','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workload-templates/inferences","request_id":"8cc6950f-2e7d-4e59-a5c9-c34f6866ae52","target_id":"01a20660-c603-705f-b5e3-22a235d1458f"}');
INSERT INTO audit VALUES(58,1795403335181,'root','policy.create','training','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/api/v2/policy/trainings","request_id":"e6152615-cef7-4a03-9814-c3c063a0e9d2","target_id":"01a20660-c60d-7474-884e-d5fbc0731165"}');
INSERT INTO audit VALUES(59,1795403335188,'root','policy.create','workspace','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/api/v2/policy/workspaces","request_id":"97e50a00-7235-4ba0-819b-cf5bb76355a1","target_id":"01a20660-c613-73b0-8b74-a7d49924935f"}');
INSERT INTO audit VALUES(60,1795403335195,'root','policy.create','distributed','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/api/v2/policy/distributed","request_id":"3b287a14-3919-442b-b064-98160abdf26b","target_id":"01a20660-c61a-7284-88f1-34a1ee36b233"}');
INSERT INTO audit VALUES(61,1795403335201,'root','policy.create','inference','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/api/v2/policy/inferences","request_id":"e5f31cd2-e17c-4412-ab94-88c2fe04a5c9","target_id":"01a20660-c620-71ab-bcad-1fb5008ebaaf"}');
INSERT INTO audit VALUES(62,1795403335209,'root','workload.submit','team-a/whole','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"d3916ca4-18b3-4240-9903-36f70e599d4b","target_id":"01a20660-c628-73ae-ac8d-c343d65dcff4"}');
INSERT INTO audit VALUES(63,1795403335221,'root','workload.submit','team-a/share','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"a34f501b-e9e9-4a28-a51a-6c54e4eda32b","target_id":"01a20660-c635-740b-896c-32e26e3da03c"}');
INSERT INTO audit VALUES(64,1795403335232,'root','workload.submit','team-b/memory','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"be8b48b9-515a-40fd-941f-812335961307","target_id":"01a20660-c63f-7540-ba35-8a7757acff41"}');
INSERT INTO audit VALUES(65,1795403335253,'root','workload.submit','team-a/migs','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"6d493028-e826-4d11-85b0-a39af3eba995","target_id":"01a20660-c654-73e7-9667-c48d89501c38"}');
INSERT INTO audit VALUES(66,1795403335284,'root','workload.submit','team-a/elastic','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"34fd79a1-0efc-4c53-bdf8-a0b7c14561fc","target_id":"01a20660-c674-73b2-ba93-d6866e7ac7bd"}');
INSERT INTO audit VALUES(67,1795403335306,'root','workload.submit','team-a/too-large','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"8830b8ec-a5e2-460d-af25-573c012b1287","target_id":"01a20660-c68a-773b-b617-527ca92a739f"}');
INSERT INTO audit VALUES(68,1795403335320,'root','workload.submit','team-a/many','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"e4e651f5-077b-4383-8526-e31ce6e45131","target_id":"01a20660-c697-7581-ae50-8decef146527"}');
INSERT INTO audit VALUES(69,1795403335330,'root','workload.submit','team-a/good','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"a8f9c340-78a0-4cf6-8ede-12b85f5c8d41","target_id":"01a20660-c6a1-722e-b788-4c1c2b16c747"}');
INSERT INTO audit VALUES(70,1795403335365,'root','workload.submit','team-a/bad','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"92cf7cbc-3666-44b6-baa9-8149dccbb525","target_id":"01a20660-c6c5-749a-8a13-830c680da3b6"}');
INSERT INTO audit VALUES(71,1795403335395,'root','workload.submit','team-a/gone','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"072ecaa0-a65a-465c-baba-aff0082ca80f","target_id":"01a20660-c6e3-7791-91eb-aec7a6b8505f"}');
INSERT INTO audit VALUES(72,1795403335461,'root','workload.submit','team-b/stopped','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"fa63b51a-bb9b-4d9e-9c9e-03afad96aafe","target_id":"01a20660-c725-729a-bb55-0caa0d4bf7e0"}');
INSERT INTO audit VALUES(73,1795403335498,'root','workload.submit','team-b/placed','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"554de1c4-e961-46ea-9eea-e482f36f5f36","target_id":"01a20660-c749-7143-81e8-05072c96ee92"}');
INSERT INTO audit VALUES(74,1795403335521,'root','workload.submit','team-a/from-assets','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"568639ee-e27b-4b4a-9c3e-3892c36eeb0a","target_id":"01a20660-c760-7109-a885-9fc2f40d259a"}');
INSERT INTO audit VALUES(75,1795403335583,'root','workload.submit','team-a/from-template','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"759cbc91-47d9-4c8a-98d2-6d93e8fcdc0a","target_id":"01a20660-c79f-753c-8757-ab68c4e91d11"}');
INSERT INTO audit VALUES(76,1795403335630,'root','workload.submit','team-a/notebook','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/workspaces","request_id":"229ec592-f9e7-4bcf-ad27-58a345181542","target_id":"01a20660-c7ce-76c0-98be-05d0ed60a2d9"}');
INSERT INTO audit VALUES(77,1795403335656,'root','workload.submit','team-a/crashing','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/workspaces","request_id":"a2390204-9e2c-4493-9379-d62fdbc58af1","target_id":"01a20660-c7e7-7064-a115-edd8bba0ebf7"}');
INSERT INTO audit VALUES(78,1795403335684,'root','workload.submit','team-a/torch','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/distributed","request_id":"b9ec6bb0-a6e7-4b1f-ba73-b15a7a927258","target_id":"01a20660-c803-74f8-82c2-7d471d44acf9"}');
INSERT INTO audit VALUES(79,1795403335698,'root','workload.submit','team-c/mpi','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/distributed","request_id":"1e63355d-e288-4fbd-a57b-21c373edb6d8","target_id":"01a20660-c812-7681-be16-684c8c20fed1"}');
INSERT INTO audit VALUES(80,1795403335709,'root','workload.submit','team-a/svc','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/inferences","request_id":"7f3beceb-9cd3-4c56-95ee-df657217555d","target_id":"01a20660-c81d-717d-9934-a6842eeffec2"}');
INSERT INTO audit VALUES(81,1795403335770,'root','workload.submit','team-c/manifest','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v2/workloads","request_id":"14d841b4-7b7d-40fb-9efb-410ca6219b88","target_id":"01a20660-c85a-7099-bdef-b550d919f41b"}');
INSERT INTO audit VALUES(82,1795403335840,'root','workload.submit','team-a/around','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings","request_id":"98adc7ff-f978-4609-8284-37d369b56d60","target_id":"01a20660-c8a0-72ff-99e4-6dd3f48bf6ef"}');
INSERT INTO audit VALUES(83,1795403343808,'root','workload.suspend','team-b/stopped','ok','{"source_ip":"127.0.0.1","method":"POST","path":"/api/v1/workloads/trainings/01a20660-c725-729a-bb55-0caa0d4bf7e0/suspend","request_id":"782c22a9-8ef4-4776-8a34-cb63f2e1030b","target_id":"01a20660-c725-729a-bb55-0caa0d4bf7e0"}');
INSERT INTO audit VALUES(84,1795403344042,'root','workload.delete','team-a/gone','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/api/v1/workloads/trainings/01a20660-c6e3-7791-91eb-aec7a6b8505f","request_id":"e66ebdf7-6c57-4d9b-8f4a-81d0343c61e7","target_id":"01a20660-c6e3-7791-91eb-aec7a6b8505f"}');
INSERT INTO audit VALUES(85,1795403344263,'root','workload.update','team-a/svc','ok','{"source_ip":"127.0.0.1","method":"PATCH","path":"/api/v1/workloads/inferences/01a20660-c81d-717d-9934-a6842eeffec2","request_id":"83635e4d-df06-4e84-8195-8dd6706d0298","target_id":"01a20660-c81d-717d-9934-a6842eeffec2"}');
INSERT INTO audit VALUES(86,1795403345084,'root','gpu.fail','node-1/3','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/nodes/node-1/gpus/3/simulated-failure","request_id":"c6944088-32be-41c0-b589-6cebaee6190f","target_id":"node-1"}');
INSERT INTO audit VALUES(87,1795403347101,'root','gpu.heal','node-1/3','ok','{"source_ip":"127.0.0.1","method":"DELETE","path":"/elastane/v1/nodes/node-1/gpus/3/simulated-failure","request_id":"c2dffbcf-a8a4-4b17-812f-5b9ff2a00b93","target_id":"node-1"}');
INSERT INTO audit VALUES(88,1795403347112,'root','gpu.fail','node-2/3','ok','{"source_ip":"127.0.0.1","method":"PUT","path":"/elastane/v1/nodes/node-2/gpus/3/simulated-failure","request_id":"012167f0-3a9f-45d5-bb93-2f51a1ecbadb","target_id":"node-2"}');
CREATE TABLE objects (
    seq        INTEGER NOT NULL PRIMARY KEY,
    kind       TEXT NOT NULL,
    id         TEXT NOT NULL,
    scope      TEXT NOT NULL,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    deleted_at INTEGER,
    UNIQUE (kind, id)
) STRICT;
INSERT INTO objects VALUES(0,'node-pool','1','cluster','','default','{"cpu_spread":false,"gpu_spread":false,"label_key":null,"label_value":null,"min_runtime_ms":null,"names":["network-topology/01a20660-c3e6-71ad-9502-79d0c8a3f8cc"]}',1795403334491,'elastane',1795403334637,'root',NULL);
INSERT INTO objects VALUES(1,'network-topology','01a20660-c3e6-71ad-9502-79d0c8a3f8cc','cluster','','net','{"levels":["zone","rack"]}',1795403334630,'root',1795403334630,'root',NULL);
INSERT INTO objects VALUES(2,'node','01a20660-c3f3-700c-a8b9-3d544fbe71df','cluster','','node-2','{"labels":{"gpu":"big","rack":"r2","run.ai/type":"large","zone":"b"}}',1795403334644,'root',1795403334644,'root',NULL);
INSERT INTO objects VALUES(3,'node','01a20660-c3f9-7490-bd07-8ea8c0814681','cluster','','node-1','{"labels":{"rack":"r1","zone":"a"}}',1795403334650,'root',1795403334650,'root',NULL);
INSERT INTO objects VALUES(4,'node-pool','01a20660-c3ff-7666-955d-9bb0c52bd2c9','cluster','','big','{"cpu_spread":false,"gpu_spread":true,"label_key":"gpu","label_value":"big","min_runtime_ms":null}',1795403334656,'root',1795403334656,'root',NULL);
INSERT INTO objects VALUES(5,'user','01a20660-c45b-77ec-b329-ebbdf42c186a','tenant','','ann@example.org','{"account":null,"must_change":false,"secrets":{"password":{"hash":"i6pTbOBtUMWyUNhGMwHcB7iUd+QG84GXO5CJCkLCZWg","lanes":1,"memory_kib":19456,"passes":2,"salt":"Iq+Wbepy0B4AdizX4zz/mA"}}}',1795403334748,'root',1795403334748,'root',NULL);
INSERT INTO objects VALUES(6,'session','01a20660-c47e-709b-86e5-422ac11e85ef','tenant','user/01a20660-c45b-77ec-b329-ebbdf42c186a','a406cf8b-7a4f-40a5-9220-0b25ca94e7e5','{"by_provider":false,"expires_at_ms":1797995334779,"password_mark":"6948cc9425b3263a","secrets":{"current_sha256":"0d63c450a90728492d2babeb650eb6af7512a2e549dad84b76c702f91247561f","own_sha256":"4d18fd0cbdc57b8ab86043e7f674907674e5b8cd9fc7953b1fa24a003ce375bf"}}',1795403334783,'ann@example.org',1795403334783,'ann@example.org',NULL);
INSERT INTO objects VALUES(7,'login','01a20660-c483-73c7-bc1e-1349dc777269','tenant','user/01a20660-c45b-77ec-b329-ebbdf42c186a','ann@example.org','{"address":"127.0.0.1","at_ms":1795403334784}',1795403334788,'ann@example.org',1795403334788,'ann@example.org',NULL);
INSERT INTO objects VALUES(8,'user','01a20660-c49d-70dd-a6ec-fc6dc6d4dffe','tenant','','ben@example.org','{"account":null,"must_change":false,"secrets":{"password":{"hash":"vJwq9ToEb3nGJTp2ECeo9f0oZ9ezu88DAoUqg9o+foE","lanes":1,"memory_kib":19456,"passes":2,"salt":"Vr48EeBfxWwvFU2CBLRqbg"}}}',1795403334814,'root',1795403334814,'root',NULL);
INSERT INTO objects VALUES(9,'session','01a20660-c4c1-7466-a96b-ca9b23ef3251','tenant','user/01a20660-c49d-70dd-a6ec-fc6dc6d4dffe','9e8d469a-f84d-4265-854d-c8dd0d8bbc70','{"by_provider":false,"expires_at_ms":1797995334845,"password_mark":"27c298d514e3c83b","secrets":{"current_sha256":"8fe6e206bf8be87341ce3dfd5ed3fa27c5ff05131c7969fd5236ad65c3d7da99","own_sha256":"4fe90d17c41b6cf44e6a31fc3973fbcc1ac4d62bc9df992a04d827bddd5eee03"}}',1795403334849,'ben@example.org',1795403334849,'ben@example.org',NULL);
INSERT INTO objects VALUES(10,'login','01a20660-c4c6-759b-9e90-d92de530787c','tenant','user/01a20660-c49d-70dd-a6ec-fc6dc6d4dffe','ben@example.org','{"address":"127.0.0.1","at_ms":1795403334851}',1795403334855,'ben@example.org',1795403334855,'ben@example.org',NULL);
INSERT INTO objects VALUES(11,'user','01a20660-c4eb-7612-8382-6ff0d7a253d2','tenant','','leaver@example.org','{"account":null,"must_change":false,"secrets":{"password":{"hash":"/XcP7bsYUdXittQwmnTKm9Am2VlOEF3bfL3Vtvc1W3o","lanes":1,"memory_kib":19456,"passes":2,"salt":"jCIg3jvlaW91liIW8l8TzA"}}}',1795403334892,'root',1795403334892,'root',NULL);
INSERT INTO objects VALUES(12,'session','01a20660-c510-77aa-86dd-ea994a22dac2','tenant','user/01a20660-c4eb-7612-8382-6ff0d7a253d2','d20511f9-7ee9-40be-888a-7e2f1737acd1','{"by_provider":false,"expires_at_ms":1797995334924,"password_mark":"1a7e39f2b802a53e","secrets":{"current_sha256":"8d2ec3cb4d4c03ee9df957a89707ec5b2f92e2b958029a056e39128e8bbc1dfb","own_sha256":"b1bf368ec96a1543dba2629bacfa57b2d9ac427f06709601df89011629b210bb"}}',1795403334928,'leaver@example.org',1795403334928,'leaver@example.org',NULL);
INSERT INTO objects VALUES(13,'login','01a20660-c515-7454-9da3-614cb64c2593','tenant','user/01a20660-c4eb-7612-8382-6ff0d7a253d2','leaver@example.org','{"address":"127.0.0.1","at_ms":1795403334930}',1795403334934,'leaver@example.org',1795403334934,'leaver@example.org',NULL);
INSERT INTO objects VALUES(14,'service-account','01a20660-c51c-73fa-be64-13ce829e162b','tenant','','ci','{"enabled":true,"secrets":{"sha256":"ec315addf473eb82236371bbb59fe93b36dc0a8a304ed94586f366e0c12186f3"},"switched_off":0}',1795403334941,'root',1795403334941,'root',NULL);
INSERT INTO objects VALUES(15,'access-rule','15','project/1','user/01a20660-c45b-77ec-b329-ebbdf42c186a','Research manager','{"group":false,"role_id":5,"subject_id":"ann@example.org"}',1795403334947,'root',1795403334947,'root',NULL);
INSERT INTO objects VALUES(16,'access-rule','16','department/2','user/01a20660-c49d-70dd-a6ec-fc6dc6d4dffe','Editor','{"group":false,"role_id":4,"subject_id":"ben@example.org"}',1795403334953,'root',1795403334953,'root',NULL);
INSERT INTO objects VALUES(17,'access-rule','17','tenant','service-account/01a20660-c51c-73fa-be64-13ce829e162b','System administrator','{"group":false,"role_id":1,"subject_id":"01a20660-c51c-73fa-be64-13ce829e162b"}',1795403334961,'root',1795403334961,'root',NULL);
INSERT INTO objects VALUES(18,'access-rule','18','project/2','user/01a20660-c4eb-7612-8382-6ff0d7a253d2','Research manager','{"group":false,"role_id":5,"subject_id":"leaver@example.org"}',1795403334967,'root',1795403334971,'root',1795403334971);
INSERT INTO objects VALUES(19,'login','01a20660-c540-722a-bd15-d36b30a2e35e','tenant','service-account/01a20660-c51c-73fa-be64-13ce829e162b','ci','{"address":"127.0.0.1","at_ms":1795403334973}',1795403334977,'ci',1795403334977,'ci',NULL);
INSERT INTO objects VALUES(20,'access-key','01a20660-c546-7223-91fd-2bc6fe576c61','tenant','user/01a20660-c4eb-7612-8382-6ff0d7a253d2','laptop','{"secrets":{"sha256":"55bc87066e9dc951c30b48435be931421054701def8fd5b85e0038bbc25276d2"}}',1795403334983,'leaver@example.org',1795403334983,'leaver@example.org',NULL);
INSERT INTO objects VALUES(21,'gpu-prices','01a20660-c54d-7208-9f82-544c65355d08','tenant','','prices','{"currency":"EUR","prices":[{"gpuModel":"simulated","perGpuHour":1.5}]}',1795403334989,'root',1795403334989,'root',NULL);
INSERT INTO objects VALUES(22,'workload-type','01a20660-c553-77c5-92b5-153d6936156d','tenant','','RayJob.ray.io','{"category_id":"train","group":"ray.io","name":"RayJob","priority_id":"low"}',1795403334995,'root',1795403334995,'root',NULL);
INSERT INTO objects VALUES(23,'compute-asset','01a20660-c559-752b-9199-620fd4ae2604','tenant','','two-gpus','{"by_administrator":true,"description":null,"spec":{"cpuMemoryRequest":"1G","gpuDevicesRequest":2},"supports":null,"updates":0}',1795403335002,'root',1795403335002,'root',NULL);
INSERT INTO objects VALUES(24,'compute-asset','01a20660-c55f-72b7-a549-4b5e0655effc','project/1','','quarter','{"by_administrator":true,"description":null,"spec":{"gpuDevicesRequest":1,"gpuPortionRequest":0.25,"gpuRequestType":"portion"},"supports":null,"updates":0}',1795403335008,'root',1795403335008,'root',NULL);
INSERT INTO objects VALUES(25,'environment-asset','01a20660-c566-7466-919a-a8992d21eef5','tenant','','shell','{"by_administrator":true,"description":null,"spec":{"args":"100000","command":"sleep","environmentVariables":[{"name":"FROM","value":"asset"}],"image":"elastane-test:latest","imagePullPolicy":"IfNotPresent"},"supports":null,"updates":0}',1795403335014,'root',1795403335014,'root',NULL);
INSERT INTO objects VALUES(26,'nfs-asset','01a20660-c570-7123-87e7-302f8e674dd2','tenant','','nas','{"by_administrator":true,"description":null,"spec":{"mountPath":"/b","path":"/a","server":"s"},"supports":null,"updates":0}',1795403335025,'root',1795403335025,'root',NULL);
INSERT INTO objects VALUES(27,'pvc-asset','01a20660-c577-7120-ad01-1a046b9158be','tenant','','claim','{"by_administrator":true,"description":null,"spec":{"claimName":"c","existingPvc":true,"path":"/b"},"supports":null,"updates":0}',1795403335031,'root',1795403335031,'root',NULL);
INSERT INTO objects VALUES(28,'s3-asset','01a20660-c57d-7060-82e3-5d0f2dfa716e','tenant','','bucket','{"by_administrator":true,"description":null,"spec":{"bucket":"b","path":"/b","url":"https://s3"},"supports":null,"updates":0}',1795403335037,'root',1795403335037,'root',NULL);
INSERT INTO objects VALUES(29,'git-asset','01a20660-c587-7734-8e1f-129c0bcc838b','tenant','','code','{"by_administrator":true,"description":null,"spec":{"path":"/b","repository":"https://g/r"},"supports":null,"updates":0}',1795403335048,'root',1795403335048,'root',NULL);
INSERT INTO objects VALUES(30,'host-path-asset','01a20660-c590-715a-9f4c-f061fa32189b','tenant','','host','{"by_administrator":true,"description":null,"spec":{"mountPath":"/b","path":"/a"},"supports":null,"updates":0}',1795403335056,'root',1795403335056,'root',NULL);
INSERT INTO objects VALUES(31,'config-map-asset','01a20660-c595-717d-ad45-45a2dbaa8ee7','tenant','','settings','{"by_administrator":true,"description":null,"spec":{"configMap":"conf","mountPath":"/b"},"supports":null,"updates":0}',1795403335062,'root',1795403335062,'root',NULL);
INSERT INTO objects VALUES(32,'password-asset','01a20660-c59b-71c6-8ff2-94f8343634b9','tenant','','login','{"by_administrator":true,"description":null,"keys":["password","username"],"secrets":"1.209232260.9huD7_k5amGF3cE_mzIHecZYTS06LZVefa1IdrO2JwQ9zVNwJUtHB63UFYkT055nWm4aXSI_-kDMnEJsCtaYLkrMkHDc","spec":{"keyId":209232260,"user":"ann"},"supports":null,"updates":0}',1795403335072,'root',1795403335072,'root',NULL);
INSERT INTO objects VALUES(33,'access-key-asset','01a20660-c5a2-70de-8e62-27320347bf71','tenant','','s3-key','{"by_administrator":true,"description":null,"keys":["AccessKeyId","SecretKey"],"secrets":"1.209232260.U9V55GWwyhvvpSGDwew_b2AK-6veh3GJADMpsHsVSixCvYcJxWCG9SbalvDYbXoFuTkMX059OzYVQ8AzeMfPGit537HJ7y8C","spec":{"accessKeyId":"AK","keyId":209232260},"supports":null,"updates":0}',1795403335078,'root',1795403335078,'root',NULL);
INSERT INTO objects VALUES(34,'docker-registry-asset','01a20660-c5ad-71cb-8a86-cb21e091e694','tenant','','registry','{"by_administrator":true,"description":null,"keys":["password","url","username"],"secrets":"1.209232260.mSuYOp9Uo3heMrguCdh6saB2sQ4GFTd2RWtvAOD8IJl-oL6RShXKWFZewXgQe0E_nzWFcuDjbjJmdICyuJkkyhhuxU_mkvG6fZg7j_YxlqkzLOsexw","spec":{"keyId":209232260,"url":"nvcr.io","user":"ann"},"supports":null,"updates":0}',1795403335089,'root',1795403335089,'root',NULL);
INSERT INTO objects VALUES(35,'generic-secret-asset','01a20660-c5b6-7206-b613-264e2099f33a','tenant','','generic','{"by_administrator":true,"description":null,"keys":["a"],"secrets":"1.209232260.13Gf0eAevpi-LJR3akD3lXRCymVYdB2eMRCtW1fk5-94Uoq685frmZXBF0g8","spec":{"keyId":209232260,"keyValuePairs":[{"key":"a"}]},"supports":null,"updates":0}',1795403335103,'root',1795403335103,'root',NULL);
INSERT INTO objects VALUES(36,'ngc-api-key-asset','01a20660-c5c4-7232-a14f-45545c22c11c','tenant','','ngc','{"by_administrator":true,"description":null,"keys":["NGC_API_KEY"],"secrets":"1.209232260.rqd6dFaUhaODs46ILHZXK3wo4U9agLAF_57XmQgRu7DcjHHo1MdZWkeKdqUXrqVpne-S1IFC6w","spec":{"keyId":209232260},"supports":null,"updates":0}',1795403335112,'root',1795403335112,'root',NULL);
INSERT INTO objects VALUES(37,'secret-asset','01a20660-c5ce-7184-817e-f6a05d3ebbc0','tenant','','secret-files','{"by_administrator":true,"description":null,"spec":{"credentialAssetId":"01a20660-c5b6-7206-b613-264e2099f33a","defaultMode":"0400","mountPath":"/b"},"supports":null,"updates":0}',1795403335119,'root',1795403335119,'root',NULL);
INSERT INTO objects VALUES(38,'nfs-asset','01a20660-c5d4-74b3-9fc8-a078e5d93bfe','tenant','','old-nas','{"by_administrator":true,"description":null,"spec":{"mountPath":"/b","path":"/a","server":"s"},"supports":null,"updates":0}',1795403335125,'root',1795403335130,'root',1795403335130);
INSERT INTO objects VALUES(39,'config-map','01a20660-c5e0-756c-a80c-cac0c0f4897d','project/1','','conf','{"secrets":{"train.yaml":"lr: 1","y":""}}',1795403335137,'root',1795403335137,'root',NULL);
INSERT INTO objects VALUES(40,'config-map','01a20660-c5e6-72b9-a2ae-a4e031e58672','project/1','','other','{"secrets":{"x":"1"}}',1795403335143,'root',1795403335143,'root',NULL);
INSERT INTO objects VALUES(41,'template','01a20660-c5ed-74d0-9f73-626a676eb934','project/1','','t-trainings','{"description":null,"master":null,"master_spec_same_as_worker":null,"names":["compute-asset/01a20660-c559-752b-9199-620fd4ae2604"],"spec":{"args":"x","assets":{"compute":"01a20660-c559-752b-9199-620fd4ae2604"},"image":"elastane-test:latest"},"workload_type":"Training"}',1795403335150,'root',1795403335150,'root',NULL);
INSERT INTO objects VALUES(42,'template','01a20660-c5f4-74d4-9dbc-9136d8f013d5','project/1','','t-workspaces','{"description":null,"master":null,"master_spec_same_as_worker":null,"names":[],"spec":{"image":"i"},"workload_type":"Workspace"}',1795403335156,'root',1795403335156,'root',NULL);
INSERT INTO objects VALUES(43,'template','01a20660-c5fd-7082-9c8e-1d5c4d9e000f','project/1','','t-distributed','{"description":null,"master":null,"master_spec_same_as_worker":null,"names":[],"spec":{"numWorkers":2},"workload_type":"Distributed"}',1795403335166,'root',1795403335166,'root',NULL);
INSERT INTO objects VALUES(44,'template','01a20660-c603-705f-b5e3-22a235d1458f','project/1','','t-inferences','{"description":null,"master":null,"master_spec_same_as_worker":null,"names":[],"spec":{"servingPort":{"container":80}},"workload_type":"Inference"}',1795403335172,'root',1795403335172,'root',NULL);
INSERT INTO objects VALUES(45,'policy','01a20660-c60d-7474-884e-d5fbc0731165','tenant','','training','{"body":{"defaults":{"workingDir":"/tmp"},"rules":{"compute":{"gpuDevicesRequest":{"max":64}}}},"name":"p-trainings","names":[]}',1795403335181,'root',1795403335181,'root',NULL);
INSERT INTO objects VALUES(46,'policy','01a20660-c613-73b0-8b74-a7d49924935f','tenant','','workspace','{"body":{"defaults":{"environmentVariables":{"instances":[{"name":"POLICY","value":"1"}]}}},"name":"p-workspaces","names":[]}',1795403335188,'root',1795403335188,'root',NULL);
INSERT INTO objects VALUES(47,'policy','01a20660-c61a-7284-88f1-34a1ee36b233','tenant','','distributed','{"body":{"rules":{"worker":{"numWorkers":{"max":100}}}},"name":"p-distributed","names":[]}',1795403335195,'root',1795403335195,'root',NULL);
INSERT INTO objects VALUES(48,'policy','01a20660-c620-71ab-bcad-1fb5008ebaaf','tenant','','inference','{"body":{"defaults":{"workingDir":"/tmp"}},"name":"p-inferences","names":[]}',1795403335201,'root',1795403335201,'root',NULL);
INSERT INTO objects VALUES(49,'volume','01a20660-c8a0-72ff-99e4-6dd2acbf872c','project/1','','data','{"engine":"v49-p1-data"}',1795403335840,'root',1795403335840,'root',NULL);
INSERT INTO objects VALUES(50,'gpu-failure','01a20660-ecbb-72b6-98d6-9feb1e369c7f','cluster','','node-1/3','{}',1795403345084,'root',1795403347101,'root',1795403347101);
INSERT INTO objects VALUES(51,'gpu-failure','01a20660-f4a7-77c0-9deb-a0f567fd2963','cluster','','node-2/3','{}',1795403347112,'root',1795403347112,'root',NULL);
CREATE TABLE departments (
    id         INTEGER NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    deleted_at INTEGER
) STRICT;
INSERT INTO departments VALUES(1,'default','{"description":"","created_by":"elastane","created_at_ms":1795403334491,"updated_by":"elastane","updated_at_ms":1795403334491,"share":null,"rules":{},"node_types":{}}',NULL);
INSERT INTO departments VALUES(2,'research','{"description":"all of research","created_by":"root","created_at_ms":1795403334663,"updated_by":"root","updated_at_ms":1795403334663,"share":{"gpu_quota_millis":4000,"gpu_limit_millis":4000,"over_quota_weight":1},"rules":{},"pool_shares":{"01a20660-c3ff-7666-955d-9bb0c52bd2c9":{"gpu_quota_millis":2000}},"node_types":{}}',NULL);
INSERT INTO departments VALUES(3,'idle','{"description":"","created_by":"root","created_at_ms":1795403334669,"updated_by":"root","updated_at_ms":1795403334669,"share":null,"rules":{},"node_types":{}}',NULL);
INSERT INTO departments VALUES(4,'closed','{"description":"","created_by":"root","created_at_ms":1795403334675,"updated_by":"root","updated_at_ms":1795403334675,"share":null,"rules":{},"node_types":{}}',1795403334680);
CREATE TABLE samples (
    subject TEXT NOT NULL,
    step_ms INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (subject, step_ms, at)
) STRICT;
INSERT INTO samples VALUES('department/1',0,1795403334613,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-1',0,1795403334613,'{"cpu":0,"cpu_held":0,"cpu_total":2000,"gpu":0,"gpu.0":0,"gpu.1":0,"gpu.2":0,"gpu.3":0,"gpu_memory_held.0":0,"gpu_memory_held.1":0,"gpu_memory_held.2":0,"gpu_memory_held.3":0,"gpu_total":4000,"memory":0,"memory_held":0,"memory_total":25276530688}');
INSERT INTO samples VALUES('node/node-2',0,1795403334613,'{"cpu":0,"cpu_held":0,"cpu_total":2000,"gpu":0,"gpu.0":0,"gpu.1":0,"gpu.2":0,"gpu.3":0,"gpu_memory_held.0":0,"gpu_memory_held.1":0,"gpu_memory_held.2":0,"gpu_memory_held.3":0,"gpu_total":4000,"memory":0,"memory_held":0,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/1',0,1795403334613,'{"cpu":0,"cpu_total":4000,"gpu":0,"gpu_nodes":2,"gpu_quota":0,"gpu_total":8000,"memory":0,"memory_total":50553061376,"workloads":0}');
INSERT INTO samples VALUES('cluster',0,1795403334613,'{"cpu":0,"cpu_total":4000,"gpu":0,"gpu_nodes":2,"gpu_quota":0,"gpu_total":8000,"memory":0,"memory_total":50553061376,"workloads":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403349615,'{"cpu":24,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3280896,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu":24,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3280896,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403349615,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403349615,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403349615,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403349615,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403349615,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403349615,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403349615,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403349615,'{"cpu":3,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403349615,'{"cpu":17,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":704512,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403349615,'{"cpu":3,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403349615,'{"cpu":3,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403349615,'{"cpu":2,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403349615,'{"cpu":4,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403349615,'{"cpu":18,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":815104,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403349615,'{"cpu":10,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403349615,'{"cpu":3,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403349615,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403349615,'{"cpu":3,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403349615,'{"cpu":4,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403349615,'{"cpu":4,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403349615,'{"cpu":5,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403349615,'{"cpu":4,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403349615,'{"cpu":3,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403349615,'{"cpu":4,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403349615,'{"answer_ms":0,"answered":0,"cpu":5,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403349615,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403349615,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403349615,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403349615,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403349615,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403349615,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403349615,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403349615,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403349615,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403349615,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":7498,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403349615,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403349615,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403349615,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('department/1',60000,1795403280000,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-1',60000,1795403280000,'{"cpu":0,"cpu_held":0,"cpu_total":2000,"gpu":0,"gpu.0":0,"gpu.1":0,"gpu.2":0,"gpu.3":0,"gpu_memory_held.0":0,"gpu_memory_held.1":0,"gpu_memory_held.2":0,"gpu_memory_held.3":0,"gpu_total":4000,"memory":0,"memory_held":0,"memory_total":25276530688}');
INSERT INTO samples VALUES('node/node-2',60000,1795403280000,'{"cpu":0,"cpu_held":0,"cpu_total":2000,"gpu":0,"gpu.0":0,"gpu.1":0,"gpu.2":0,"gpu.3":0,"gpu_memory_held.0":0,"gpu_memory_held.1":0,"gpu_memory_held.2":0,"gpu_memory_held.3":0,"gpu_total":4000,"memory":0,"memory_held":0,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/1',60000,1795403280000,'{"cpu":0,"cpu_total":4000,"gpu":0,"gpu_nodes":2,"gpu_quota":0,"gpu_total":8000,"memory":0,"memory_total":50553061376,"workloads":0}');
INSERT INTO samples VALUES('cluster',60000,1795403280000,'{"cpu":0,"cpu_total":4000,"gpu":0,"gpu_nodes":2,"gpu_quota":0,"gpu_total":8000,"memory":0,"memory_total":50553061376,"workloads":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403364616,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3280896,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3280896,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403364616,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403364616,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403364616,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403364616,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403364616,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403364616,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403364616,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403364616,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403364616,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403364616,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403364616,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403364616,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403364616,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403364616,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403364616,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403364616,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403364616,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403364616,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403364616,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403364616,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403364616,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":10145,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403364616,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403364616,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403364616,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403379617,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3280896,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3280896,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403379617,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403379617,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403379617,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403379617,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403379617,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403379617,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403379617,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403379617,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403379617,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403379617,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403379617,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403379617,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403379617,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403379617,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403379617,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403379617,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403379617,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403379617,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403379617,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403379617,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403379617,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":12792,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403379617,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403379617,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403379617,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403394618,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3276800,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3276800,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403394618,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403394618,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403394618,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403394618,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403394618,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403394618,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403394618,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403394618,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403394618,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403394618,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403394618,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403394618,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403394618,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403394618,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403394618,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403394618,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403394618,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403394618,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403394618,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403394618,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403394618,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":15440,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403394618,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403394618,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403394618,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403409619,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3276800,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3276800,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403409619,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403409619,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403409619,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403409619,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403409619,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403409619,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403409619,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403409619,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403409619,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403409619,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403409619,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403409619,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403409619,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403409619,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403409619,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403409619,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403409619,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403409619,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403409619,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403409619,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403409619,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":18087,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403409619,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403409619,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403409619,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('kind/workspace',60000,1795403340000,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('node/node-1',60000,1795403340000,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('node/node-2',60000,1795403340000,'{"cpu":6,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3279872,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',60000,1795403340000,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',60000,1795403340000,'{"cpu":4,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":523264,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',60000,1795403340000,'{"cpu":4,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":557056,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',60000,1795403340000,'{"cpu":2,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',60000,1795403340000,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":470016,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',60000,1795403340000,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',60000,1795403340000,'{"cpu":1,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',60000,1795403340000,'{"answer_ms":0,"answered":0,"cpu":1,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu":6,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3279872,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',60000,1795403340000,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('project/1',60000,1795403340000,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',60000,1795403340000,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2',60000,1795403340000,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',60000,1795403340000,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3',60000,1795403340000,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',60000,1795403340000,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2',60000,1795403340000,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',60000,1795403340000,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('department/3',60000,1795403340000,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',60000,1795403340000,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('kind/distributed',60000,1795403340000,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',60000,1795403340000,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('kind/training',60000,1795403340000,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('cluster',60000,1795403340000,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":11468,"workloads":17000}');
INSERT INTO samples VALUES('department/1',60000,1795403340000,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',60000,1795403340000,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',60000,1795403340000,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('node/node-2',0,1795403424621,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3276800,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3276800,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403424621,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403424621,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403424621,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403424621,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403424621,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403424621,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403424621,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403424621,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403424621,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403424621,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403424621,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403424621,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403424621,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403424621,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403424621,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403424621,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403424621,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403424621,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403424621,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403424621,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403424621,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":20734,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403424621,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403424621,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403424621,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
INSERT INTO samples VALUES('node/node-2',0,1795403439622,'{"cpu":0,"cpu_held":700,"cpu_total":2000,"gpu":2994,"gpu.0":994,"gpu.1":1000,"gpu.2":1000,"gpu.3":0,"gpu_memory_held.0":42691974922,"gpu_memory_held.1":42949672960,"gpu_memory_held.2":42949672960,"gpu_memory_held.3":0,"gpu_total":4000,"memory":3276800,"memory_held":700000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu":0,"cpu_total":2000,"gpu":2994,"gpu_nodes":1,"gpu_quota":2000,"gpu_total":4000,"memory":3276800,"memory_total":25276530688,"waited_ms":6703,"workloads":5000}');
INSERT INTO samples VALUES('pool/1',0,1795403439622,'{"cpu_total":2000,"gpu":3500,"gpu_nodes":1,"gpu_quota":4000,"gpu_total":4000,"memory_total":25276530688,"waited_ms":5671,"workloads":8000}');
INSERT INTO samples VALUES('department/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('department/1/pool/1',0,1795403439622,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('department/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu_held":600,"gpu":1994,"gpu_quota":2000,"memory_held":600000000}');
INSERT INTO samples VALUES('department/2/pool/1',0,1795403439622,'{"cpu_held":1200,"gpu":3500,"gpu_quota":4000,"memory_held":1700000000}');
INSERT INTO samples VALUES('project/1/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu_held":500,"gpu":1900,"gpu_quota":1000,"memory_held":500000000}');
INSERT INTO samples VALUES('project/1/pool/1',0,1795403439622,'{"cpu_held":1200,"cpu_quota":4000,"gpu":3500,"gpu_quota":2000,"memory_held":1700000000,"memory_quota":4294967296}');
INSERT INTO samples VALUES('project/2/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu_held":100,"gpu":94,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/2/pool/1',0,1795403439622,'{"cpu_held":0,"gpu":0,"gpu_quota":1500,"memory_held":0}');
INSERT INTO samples VALUES('project/3/pool/01a20660-c3ff-7666-955d-9bb0c52bd2c9',0,1795403439622,'{"cpu_held":100,"gpu":1000,"gpu_quota":0,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3/pool/1',0,1795403439622,'{"cpu_held":300,"gpu":0,"gpu_quota":0,"memory_held":300000000}');
INSERT INTO samples VALUES('pod/01a20660-c628-73ae-ac8d-c344b9eb4ca9',0,1795403439622,'{"cpu":0,"cpu_held":500,"gpu":1000,"gpu_memory_held":17179869184,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c635-740b-896c-32e39774c833',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":462848,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c63f-7540-ba35-8a786811d043',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":94,"gpu_memory_held":4037269258,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c674-73b2-ba93-d687e7ea40a8',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dedd4f728d4',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":495616,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c697-7581-ae50-8dee4adebcab',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c760-7109-a885-9fc3dc982e7e',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":250,"gpu_memory_held":4294967296,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c79f-753c-8757-ab693bf51198',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":2000,"gpu_memory_held":34359738368,"memory":462848,"memory_held":1000000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7ce-76c0-98be-05d1768a1fe1',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":500,"gpu_memory_held":21474836480,"memory":479232,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c7e7-7064-a115-edd90fae0a1a',0,1795403439622,'{"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory_held":100000000,"pods":1000,"pods_running":0}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4887e7b817',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d49b239d923',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":471040,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c803-74f8-82c2-7d4a16d50d1f',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":200,"gpu_memory_held":8589934592,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684dfb60c676',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684ee3077cfb',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c812-7681-be16-684f532ea356',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-c85a-7099-bdef-b55116e32da5',0,1795403439622,'{"cpu":0,"cpu_held":100,"gpu":1000,"gpu_memory_held":42949672960,"memory":458752,"memory_held":100000000,"pods":1000,"pods_running":1000}');
INSERT INTO samples VALUES('pod/01a20660-e986-7504-a811-51bed1df904d',0,1795403439622,'{"answer_ms":0,"answered":0,"cpu":0,"cpu_held":100,"gpu":0,"gpu_memory_held":0,"memory":466944,"memory_held":100000000,"pods":1000,"pods_running":1000,"requests":0}');
INSERT INTO samples VALUES('inference/01a20660-c81d-717d-9934-a6842eeffec2',0,1795403439622,'{"answer_ms":0,"answered":0,"replicas":0,"requests":0}');
INSERT INTO samples VALUES('project/1',0,1795403439622,'{"cpu_held":1700,"gpu":5400,"gpu_quota":3000,"memory_held":2200000000}');
INSERT INTO samples VALUES('project/2',0,1795403439622,'{"cpu_held":100,"gpu":94,"gpu_quota":1500,"memory_held":100000000}');
INSERT INTO samples VALUES('project/3',0,1795403439622,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('kind/training',0,1795403439622,'{"gpu":5594,"workloads":12000}');
INSERT INTO samples VALUES('kind/workspace',0,1795403439622,'{"gpu":500,"workloads":2000}');
INSERT INTO samples VALUES('kind/distributed',0,1795403439622,'{"gpu":400,"workloads":2000}');
INSERT INTO samples VALUES('kind/inference',0,1795403439622,'{"gpu":0,"workloads":1000}');
INSERT INTO samples VALUES('node/node-1',0,1795403439622,'{"cpu_held":1500,"cpu_total":2000,"gpu":3500,"gpu.0":1000,"gpu.1":1000,"gpu.2":1000,"gpu.3":500,"gpu_memory_held.0":17179869184,"gpu_memory_held.1":17179869184,"gpu_memory_held.2":17179869184,"gpu_memory_held.3":8589934592,"gpu_total":4000,"memory_held":2000000000,"memory_total":25276530688}');
INSERT INTO samples VALUES('cluster',0,1795403439622,'{"cpu_total":4000,"gpu":6494,"gpu_nodes":2,"gpu_quota":6000,"gpu_total":8000,"memory_total":50553061376,"waited_ms":23381,"workloads":17000}');
INSERT INTO samples VALUES('department/1',0,1795403439622,'{"cpu_held":400,"gpu":1000,"gpu_quota":0,"memory_held":400000000}');
INSERT INTO samples VALUES('department/2',0,1795403439622,'{"cpu_held":1800,"gpu":5494,"gpu_quota":6000,"memory_held":2300000000}');
INSERT INTO samples VALUES('department/3',0,1795403439622,'{"cpu_held":0,"cpu_quota":0,"gpu":0,"gpu_quota":0,"memory_held":0,"memory_quota":0}');
CREATE TABLE IF NOT EXISTS "usage" (
    step_start   INTEGER NOT NULL,
    project_id   INTEGER NOT NULL,
    pool         TEXT NOT NULL DEFAULT '',
    gpu_millis   INTEGER NOT NULL,
    cpu_millis   INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    PRIMARY KEY (step_start, project_id, pool)
) STRICT;
CREATE TABLE allocations (
    pod_id       TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    project_id   INTEGER NOT NULL,
    project_name TEXT NOT NULL,
    owner        TEXT NOT NULL,
    gpu_model    TEXT NOT NULL,
    gpu_millis   INTEGER NOT NULL,
    PRIMARY KEY (pod_id, started_at)
) STRICT;
INSERT INTO allocations VALUES('01a20660-c628-73ae-ac8d-c344b9eb4ca9',1795403335209,NULL,1,'team-a','root','simulated',1000);
INSERT INTO allocations VALUES('01a20660-c635-740b-896c-32e39774c833',1795403335221,NULL,1,'team-a','root','simulated',250);
INSERT INTO allocations VALUES('01a20660-c63f-7540-ba35-8a786811d043',1795403335232,NULL,2,'team-b','root','simulated',94);
INSERT INTO allocations VALUES('01a20660-c674-73b2-ba93-d687e7ea40a8',1795403335284,1795403340506,1,'team-a','root','simulated',2000);
INSERT INTO allocations VALUES('01a20660-c725-729a-bb55-0cab07884f8f',1795403335461,1795403343966,2,'team-b','root','simulated',1000);
INSERT INTO allocations VALUES('01a20660-c760-7109-a885-9fc3dc982e7e',1795403335521,NULL,1,'team-a','root','simulated',250);
INSERT INTO allocations VALUES('01a20660-c79f-753c-8757-ab693bf51198',1795403335583,1795403345532,1,'team-a','root','simulated',2000);
INSERT INTO allocations VALUES('01a20660-c7ce-76c0-98be-05d1768a1fe1',1795403335630,NULL,1,'team-a','root','simulated',500);
INSERT INTO allocations VALUES('01a20660-c803-74f8-82c2-7d49b239d923',1795403335684,NULL,1,'team-a','root','simulated',200);
INSERT INTO allocations VALUES('01a20660-c803-74f8-82c2-7d4a16d50d1f',1795403335684,NULL,1,'team-a','root','simulated',200);
INSERT INTO allocations VALUES('01a20660-c674-73b2-ba93-d687e7ea40a8',1795403340506,NULL,1,'team-a','root','simulated',1000);
INSERT INTO allocations VALUES('01a20660-c85a-7099-bdef-b55116e32da5',1795403340506,NULL,3,'team-c','root','simulated',1000);
INSERT INTO allocations VALUES('01a20660-c79f-753c-8757-ab693bf51198',1795403345674,NULL,1,'team-a','root','simulated',2000);
CREATE TABLE gpu_use (
    hour       INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    owner      TEXT NOT NULL,
    gpu_model  TEXT NOT NULL,
    measured   INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    PRIMARY KEY (hour, project_id, owner, gpu_model)
) STRICT;
CREATE UNIQUE INDEX projects_living_name ON projects (name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX workloads_living_name ON workloads (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX pods_of_workload ON pods (workload_id);
CREATE INDEX events_of_workload ON events (workload_id, seq);
CREATE INDEX events_of_project ON events (project_id, seq);
CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE UNIQUE INDEX objects_living_name ON objects (kind, scope, owner, name)
    WHERE deleted_at IS NULL;
CREATE INDEX audit_by_time ON audit (at);
CREATE UNIQUE INDEX departments_living_name ON departments (name) WHERE deleted_at IS NULL;
CREATE INDEX samples_time ON samples (step_ms, at);
CREATE INDEX allocations_ended ON allocations (ended_at);
CREATE TRIGGER events_are_kept BEFORE DELETE ON events
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_from'), 0)
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    WHEN OLD.seq >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'audit_from'), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
COMMIT;
