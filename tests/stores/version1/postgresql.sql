-- The tables of version 1, as it made them. They never change.

CREATE TABLE meta (
	app TEXT NOT NULL,
	version BIGINT NOT NULL,
	PRIMARY KEY (app)
);

CREATE TABLE records (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	plugin TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	value TEXT NOT NULL,
	updated_at DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (partition, thread_id, plugin, key)
);

CREATE TABLE threads (
	partition TEXT COLLATE "C" NOT NULL,
	id TEXT COLLATE "C" NOT NULL,
	agent TEXT COLLATE "C" NOT NULL,
	title TEXT,
	title_source TEXT,
	metadata TEXT NOT NULL,
	created_at DOUBLE PRECISION NOT NULL,
	updated_at DOUBLE PRECISION NOT NULL,
	runs BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	events BIGINT NOT NULL,
	queued BIGINT NOT NULL,
	active TEXT COLLATE "C",
	turn BIGINT NOT NULL,
	owner TEXT,
	fence BIGINT NOT NULL,
	ready DOUBLE PRECISION,
	takeovers BIGINT NOT NULL,
	cancel TEXT,
	PRIMARY KEY (partition, id)
);

CREATE INDEX threads_listed ON threads (partition, agent, updated_at, id);

CREATE INDEX threads_ready ON threads (ready) WHERE ready IS NOT NULL;

CREATE TABLE actions (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	run_id TEXT COLLATE "C" NOT NULL,
	call_id TEXT COLLATE "C" NOT NULL,
	message_id TEXT COLLATE "C" NOT NULL,
	tool TEXT NOT NULL,
	status TEXT NOT NULL,
	outcome TEXT,
	output TEXT,
	error TEXT,
	input TEXT,
	rewritten BIGINT NOT NULL,
	kind TEXT,
	payload TEXT,
	digest TEXT,
	decision TEXT,
	expires_at DOUBLE PRECISION,
	PRIMARY KEY (partition, thread_id, run_id, call_id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
);

CREATE INDEX actions_expiring ON actions (expires_at) WHERE expires_at IS NOT NULL AND outcome IS NULL;

CREATE TABLE events (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	last BIGINT NOT NULL,
	size BIGINT NOT NULL,
	run_id TEXT COLLATE "C" NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (partition, thread_id, last),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
);

CREATE TABLE jobs (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	id TEXT COLLATE "C" NOT NULL,
	kind TEXT NOT NULL,
	run_id TEXT COLLATE "C" NOT NULL,
	payload TEXT NOT NULL,
	attempt BIGINT NOT NULL,
	ready DOUBLE PRECISION,
	PRIMARY KEY (partition, thread_id, id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
);

CREATE INDEX jobs_ready ON jobs (ready) WHERE ready IS NOT NULL;

CREATE TABLE messages (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	turn BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	id TEXT COLLATE "C" NOT NULL,
	run_id TEXT COLLATE "C" NOT NULL,
	role TEXT NOT NULL,
	parts TEXT NOT NULL,
	metadata TEXT NOT NULL,
	created_at DOUBLE PRECISION NOT NULL,
	PRIMARY KEY (partition, thread_id, turn, seq),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX messages_id ON messages (partition, thread_id, id);

CREATE TABLE runs (
	partition TEXT COLLATE "C" NOT NULL,
	thread_id TEXT COLLATE "C" NOT NULL,
	id TEXT COLLATE "C" NOT NULL,
	turn BIGINT NOT NULL,
	agent TEXT NOT NULL,
	version TEXT NOT NULL,
	operation TEXT NOT NULL,
	request TEXT NOT NULL,
	digest TEXT NOT NULL,
	metadata TEXT NOT NULL,
	status TEXT NOT NULL,
	parent_run_id TEXT COLLATE "C",
	attempt BIGINT NOT NULL,
	episode BIGINT NOT NULL,
	outcome TEXT,
	reason TEXT,
	stop_reason TEXT,
	usage TEXT,
	error TEXT,
	cancel TEXT,
	created_at DOUBLE PRECISION NOT NULL,
	started_at DOUBLE PRECISION,
	finished_at DOUBLE PRECISION,
	PRIMARY KEY (partition, thread_id, id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX runs_active ON runs (partition, thread_id) WHERE status IN ('running', 'suspended');

CREATE INDEX runs_queued ON runs (partition, thread_id, turn) WHERE status = 'queued';
