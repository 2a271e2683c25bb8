-- A store of schema version 1, written at commit 23e7a00 by `tunesmith tune tiny.yaml -o out --device fake:GPU:8`, then
-- by the same command with --remeasure. The paths in the runs' commands were replaced.
PRAGMA application_id = 1953395565;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE documents (
	digest VARCHAR NOT NULL, 
	text VARCHAR NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "documents" VALUES('c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','{"configuration": "{\"FakeDrift\": 0, \"FakeFault\": \"none\", \"FakeNoise\": 0, \"GlobalSplitU\": 1, \"KernelLanguage\": \"fake\", \"LoopUnroll\": 0, \"PrefetchGlobalRead\": false, \"ThreadTile\": [4, 4], \"VectorWidth\": 1, \"WorkGroup\": [16, 8, 1]}", "kernel": "FakeGemm", "type": "{\"fields\": \"{\\\"Batched\\\": false, \\\"DataType\\\": \\\"s\\\", \\\"StridedBatched\\\": true, \\\"TransposeA\\\": false, \\\"TransposeB\\\": true, \\\"UseBeta\\\": true}\", \"indices\": [\"M\", \"N\", \"K\"], \"name\": \"Cij_Aik_Bjk_SB\", \"operation\": \"GEMM\"}"}');
INSERT INTO "documents" VALUES('8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','{"leading": [], "scalars": {"alpha": 1.0, "beta": 0.0}, "sizes": [32, 32, 32], "type": "{\"fields\": \"{\\\"Batched\\\": false, \\\"DataType\\\": \\\"s\\\", \\\"StridedBatched\\\": true, \\\"TransposeA\\\": false, \\\"TransposeB\\\": true, \\\"UseBeta\\\": true}\", \"indices\": [\"M\", \"N\", \"K\"], \"name\": \"Cij_Aik_Bjk_SB\", \"operation\": \"GEMM\"}"}');
INSERT INTO "documents" VALUES('a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','{"api": "fake", "architecture": "fake", "compute_units": 8, "double_precision": true, "driver": "1.0", "global_memory_bytes": 1073741824, "kind": "GPU", "last_level_cache_bytes": 262144, "local_memory_bytes": 49152, "max_allocation_bytes": 268435456, "max_work_group_size": 1024, "name": "fake GPU", "selector": "fake:GPU:8", "sub_group_size": 32}');
INSERT INTO "documents" VALUES('b64a78040afaca28fb4ed1fff44ad081888b4d10bbbd0b01e50f4fb95c5df2f3','{"configuration": "{\"FakeDrift\": 0, \"FakeFault\": \"none\", \"FakeNoise\": 0, \"GlobalSplitU\": 1, \"KernelLanguage\": \"fake\", \"LoopUnroll\": 0, \"PrefetchGlobalRead\": false, \"ThreadTile\": [4, 4], \"VectorWidth\": 1, \"WorkGroup\": [8, 16, 1]}", "kernel": "FakeGemm", "type": "{\"fields\": \"{\\\"Batched\\\": false, \\\"DataType\\\": \\\"s\\\", \\\"StridedBatched\\\": true, \\\"TransposeA\\\": false, \\\"TransposeB\\\": true, \\\"UseBeta\\\": true}\", \"indices\": [\"M\", \"N\", \"K\"], \"name\": \"Cij_Aik_Bjk_SB\", \"operation\": \"GEMM\"}"}');
CREATE TABLE measurements (
	id INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	round VARCHAR NOT NULL, 
	identity VARCHAR NOT NULL, 
	problem_type VARCHAR NOT NULL, 
	solution VARCHAR NOT NULL, 
	problem VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	toolchain VARCHAR NOT NULL, 
	outcome VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	seconds FLOAT, 
	low FLOAT, 
	high FLOAT, 
	count INTEGER, 
	samples BLOB NOT NULL, 
	raced INTEGER NOT NULL, 
	facts VARCHAR NOT NULL, 
	compile_seconds FLOAT NOT NULL, 
	verify_seconds FLOAT NOT NULL, 
	timing_seconds FLOAT NOT NULL, 
	started FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key", round), 
	FOREIGN KEY(solution) REFERENCES documents (digest), 
	FOREIGN KEY(problem) REFERENCES documents (digest), 
	FOREIGN KEY(target) REFERENCES documents (digest)
);
INSERT INTO "measurements" VALUES(1,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','full','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','relative error 9.4e-08',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',2.05162700012806453742e-03,1.51148632000058569246e-01,4.12668900003154703881e-03,1.79553932852494263646e+09);
INSERT INTO "measurements" VALUES(2,'5035d13268908b9cb1cea8639c836f1754167fcc4fb9a65c31a9b21d6d617dc6','full','7f808cecfbc4bf8821bce2d68dd50380c08632d3b139ac6f30943bc76b2fa1de','Cij_Aik_Bjk_SB','b64a78040afaca28fb4ed1fff44ad081888b4d10bbbd0b01e50f4fb95c5df2f3','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','relative error 9.4e-08',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',8.48990000577032333239e-05,3.87884449999091884819e-02,1.56735000018670689314e-03,1.79553932868349552156e+09);
INSERT INTO "measurements" VALUES(3,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','confirm/cd72234941adf2b3','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.94442414999684842769e-02,1.79553932874852824209e+09);
INSERT INTO "measurements" VALUES(4,'5035d13268908b9cb1cea8639c836f1754167fcc4fb9a65c31a9b21d6d617dc6','confirm/cd72234941adf2b3','7f808cecfbc4bf8821bce2d68dd50380c08632d3b139ac6f30943bc76b2fa1de','Cij_Aik_Bjk_SB','b64a78040afaca28fb4ed1fff44ad081888b4d10bbbd0b01e50f4fb95c5df2f3','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.94465460000401435536e-02,1.79553932874853324885e+09);
INSERT INTO "measurements" VALUES(5,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','anchor/0','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.49124600011418806388e-03,1.79553932883396387097e+09);
INSERT INTO "measurements" VALUES(6,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','full+','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','relative error 9.4e-08',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',2.1950860000288230367e-03,1.23409318000085477251e-01,7.45714499998939572833e-03,1.79553933390596914291e+09);
INSERT INTO "measurements" VALUES(7,'5035d13268908b9cb1cea8639c836f1754167fcc4fb9a65c31a9b21d6d617dc6','full+','7f808cecfbc4bf8821bce2d68dd50380c08632d3b139ac6f30943bc76b2fa1de','Cij_Aik_Bjk_SB','b64a78040afaca28fb4ed1fff44ad081888b4d10bbbd0b01e50f4fb95c5df2f3','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','relative error 9.4e-08',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',7.7855999961684574373e-05,3.72467750000851083314e-02,0.00156889200002297,1.79553933404018020627e+09);
INSERT INTO "measurements" VALUES(8,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','confirm/cd72234941adf2b3+','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.62321825000617536716e-02,1.79553933410359168047e+09);
INSERT INTO "measurements" VALUES(9,'5035d13268908b9cb1cea8639c836f1754167fcc4fb9a65c31a9b21d6d617dc6','confirm/cd72234941adf2b3+','7f808cecfbc4bf8821bce2d68dd50380c08632d3b139ac6f30943bc76b2fa1de','Cij_Aik_Bjk_SB','b64a78040afaca28fb4ed1fff44ad081888b4d10bbbd0b01e50f4fb95c5df2f3','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.62345669999695019214e-02,1.79553933410359740259e+09);
INSERT INTO "measurements" VALUES(10,'28036f01a7d0dff1d588397e269723984348200671e817cc8e4954b28860bc77','anchor/0+','7f7c8b3627c9069a45a76cfbedcd94378afb000fe18a0f8cc51b8d021bb66ee8','Cij_Aik_Bjk_SB','c5ce87c0a2d7efa23a2e021d054d4817d9aa83ce44377b0251067088facc0d48','8cc1aa25c01fe2b465b2f938599a77399070ec664274ebf7c01e95a3f1da8647','a03635f5bb3f74d59ebaa0b80aa7376e961dee3c5d3ee1f78b2a31eb37763249','fake 1.0','ok','','',4.91537659828668635443e-06,4.91537659828668635443e-06,4.91537659828668635443e-06,6,X'E3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43EE3B7616ED89DD43E',0,'[{"entry": "gemm", "registers": 32, "spill_bytes": 0, "local_bytes": 0, "max_work_group_size": null}]',0.0,0.0,1.67845700002544617746e-03,1.79553933419270253177e+09);
CREATE TABLE run_events (
	id INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	time FLOAT NOT NULL, 
	payload VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "run_events" VALUES(1,'48cb9cadb54c45328edf83d718511763','begin',1.79553932742727494244e+09,'{"command": ["/usr/bin/tunesmith", "tune", "tiny.yaml", "-o", "out", "--device", "fake:GPU:8", "-q"], "device": "fake GPU", "driver": "1.0", "remeasures": false, "selector": "fake:GPU:8", "tuning_file": "/home/somebody/tiny.yaml", "tuning_file_sha256": "433c86a0b0ffe1a064117b1ec1621f47afce1264d2c1bbcc471a179c12d183b7", "version": "0.1.0"}');
INSERT INTO "run_events" VALUES(2,'48cb9cadb54c45328edf83d718511763','end',1.79553932980269980433e+09,'{"cost": {"compile": 0.0021365260001857678, "timing": 0.04607607250034107, "verify": 0.18993707699996776}, "measured": 5, "note": "", "reused": 0, "seconds": 2.369603479000034, "state": "finished"}');
INSERT INTO "run_events" VALUES(3,'c4d95096ad4c4fada455d3c6e6b6f4bc','begin',1.79553933297385454178e+09,'{"command": ["/usr/bin/tunesmith", "tune", "tiny.yaml", "-o", "out", "--device", "fake:GPU:8", "-q", "--remeasure"], "device": "fake GPU", "driver": "1.0", "remeasures": true, "selector": "fake:GPU:8", "tuning_file": "/home/somebody/tiny.yaml", "tuning_file_sha256": "433c86a0b0ffe1a064117b1ec1621f47afce1264d2c1bbcc471a179c12d183b7", "version": "0.1.0"}');
INSERT INTO "run_events" VALUES(4,'c4d95096ad4c4fada455d3c6e6b6f4bc','end',1.79553933516237545012e+09,'{"cost": {"compile": 0.0022729419999905076, "timing": 0.04317124350006907, "verify": 0.16065609300017059}, "measured": 5, "note": "", "reused": 0, "seconds": 2.1861106779999773, "state": "finished"}');
CREATE TABLE steps (
	id INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	payload VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "steps" VALUES(1,'48cb9cadb54c45328edf83d718511763','{"candidates": 0, "dropped": [], "failed": {}, "group": 0, "lineages": 1, "name": "01_Fork_WorkGroup", "notes": [], "number": 1, "phase": "ForkParameters", "problem_type": "Cij_Aik_Bjk_SB", "problems": 0, "rejected": {}, "seconds": 0.009712274999856163, "survivors": 2, "ties": 0, "winners": []}');
INSERT INTO "steps" VALUES(2,'48cb9cadb54c45328edf83d718511763','{"candidates": 2, "dropped": [], "failed": {}, "group": 0, "lineages": 2, "name": "02_Final", "notes": [], "number": 2, "phase": "BenchmarkFinalParameters", "problem_type": "Cij_Aik_Bjk_SB", "problems": 1, "rejected": {}, "seconds": 1.3380717509999158, "survivors": 2, "ties": 0, "winners": []}');
INSERT INTO "steps" VALUES(3,'c4d95096ad4c4fada455d3c6e6b6f4bc','{"candidates": 0, "dropped": [], "failed": {}, "group": 0, "lineages": 1, "name": "01_Fork_WorkGroup", "notes": [], "number": 1, "phase": "ForkParameters", "problem_type": "Cij_Aik_Bjk_SB", "problems": 0, "rejected": {}, "seconds": 0.008560876000046846, "survivors": 2, "ties": 0, "winners": []}');
INSERT INTO "steps" VALUES(4,'c4d95096ad4c4fada455d3c6e6b6f4bc','{"candidates": 2, "dropped": [], "failed": {}, "group": 0, "lineages": 2, "name": "02_Final", "notes": [], "number": 2, "phase": "BenchmarkFinalParameters", "problem_type": "Cij_Aik_Bjk_SB", "problems": 1, "rejected": {}, "seconds": 1.168422271000054, "survivors": 2, "ties": 0, "winners": []}');
CREATE INDEX ix_run_events_run ON run_events (run);
CREATE INDEX ix_steps_run ON steps (run);
CREATE INDEX measurements_by_problem ON measurements (problem_type, problem, seconds);
COMMIT;
