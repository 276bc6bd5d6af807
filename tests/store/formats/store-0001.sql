BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE metric (
	run_id VARCHAR(64) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	value FLOAT, 
	PRIMARY KEY (run_id, name), 
	FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
INSERT INTO "metric" VALUES('e80063e11f464d34','cpu_s',0.81);
INSERT INTO "metric" VALUES('e80063e11f464d34','delivered_bytes',2250000000.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','drain_s',1.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','dropped_packets',97.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','goodput_bps',300000000.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','lag_max_bytes',75000000.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','lag_max_s',2.6);
INSERT INTO "metric" VALUES('e80063e11f464d34','lag_p50_s',0.25);
INSERT INTO "metric" VALUES('e80063e11f464d34','lag_p99_s',2.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','line_share',0.3);
INSERT INTO "metric" VALUES('e80063e11f464d34','retransmitted_segments',33.0);
INSERT INTO "metric" VALUES('e80063e11f464d34','simulated_s',60.0);
CREATE TABLE parameter (
	run_id VARCHAR(64) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (run_id, name), 
	FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
INSERT INTO "parameter" VALUES('e80063e11f464d34','flow.stack','reno');
INSERT INTO "parameter" VALUES('e80063e11f464d34','path.loss','0.0001');
CREATE TABLE run (
	id VARCHAR(64) NOT NULL, 
	format INTEGER NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	scenario VARCHAR(255) NOT NULL, 
	ground VARCHAR(16) NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	build VARCHAR(64) NOT NULL, 
	seed VARCHAR(20) NOT NULL, 
	record TEXT NOT NULL, 
	flow_series VARCHAR(255), 
	link_series VARCHAR(255), 
	PRIMARY KEY (id)
);
INSERT INTO "run" VALUES('e80063e11f464d34',1,'2026-01-02T03:04:05Z','replicate-oltp','sim','0.1.0','bbbbbbbbbbbbbbbb','1','{"background":[],"created":"2026-01-02T03:04:05Z","crowds":[],"flows":[{"cpu_s":0.81,"delivered_bytes":2250000000,"drain_s":1.0,"dropped_packets":97,"goodput_bps":300000000.0,"group":0,"lag_max_bytes":75000000,"lag_max_s":2.6,"lag_p50_s":0.25,"lag_p99_s":2.0,"line_share":0.3,"name":"mirror","retransmitted_segments":33,"simulated_s":60.0,"stack":"reno, reduction 128","workload":"replicate"}],"format":1,"ground":"sim","happened_s":[],"host":{"build":"bbbbbbbbbbbbbbbb","cores":2,"cpu":"test","kernel":"Linux","python":"3.11"},"id":"e80063e11f464d34","inputs":[],"links":[{"dropped_packets":97,"name":"local->far"},{"dropped_packets":97,"name":"far->local"}],"manager":null,"metrics":{"cpu_s":0.81,"delivered_bytes":2250000000,"drain_s":1.0,"dropped_packets":97,"goodput_bps":300000000.0,"lag_max_bytes":75000000,"lag_max_s":2.6,"lag_p50_s":0.25,"lag_p99_s":2.0,"line_share":0.3,"retransmitted_segments":33,"simulated_s":60.0},"notes":[],"parameters":{"flow.stack":"reno","path.loss":0.0001},"scenario":{"description":"","file":"replicate-oltp.toml","name":"replicate-oltp","overrides":[],"text":"name = \"replicate-oltp\"\n","title":""},"seed":1,"series":null,"spec":{"events":[],"flows":[{"group":0,"name":"mirror","return_route":[1],"route":[0],"stack":{"congestion":"reno","parameters":{"reduction":128}},"workload":{"kind":"replicate"}}],"format":1,"links":[{"name":"local->far","rate_bps":1000000000},{"name":"far->local","rate_bps":1000000000}],"seed":1,"varied":{}},"trims":[],"version":"0.1.0"}',NULL,NULL);
CREATE INDEX ix_run_created ON run (created);
CREATE INDEX ix_run_scenario ON run (scenario);
CREATE INDEX metric_name_value ON metric (name, value);
CREATE INDEX parameter_name ON parameter (name);
COMMIT;
