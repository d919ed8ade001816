-- The tables of version 1, as it made them. They never change.

CREATE TABLE meta (
	app TEXT NOT NULL,
	version BIGINT NOT NULL,
	PRIMARY KEY (app)
);

CREATE TABLE records (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	plugin TEXT NOT NULL,
	"key" TEXT NOT NULL,
	value TEXT NOT NULL,
	updated_at DOUBLE NOT NULL,
	PRIMARY KEY (partition, thread_id, plugin, "key")
)
 WITHOUT ROWID;

CREATE TABLE threads (
	partition TEXT NOT NULL,
	id TEXT NOT NULL,
	agent TEXT NOT NULL,
	title TEXT,
	title_source TEXT,
	metadata TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	updated_at DOUBLE NOT NULL,
	runs BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	events BIGINT NOT NULL,
	queued BIGINT NOT NULL,
	active TEXT,
	turn BIGINT NOT NULL,
	owner TEXT,
	fence BIGINT NOT NULL,
	ready DOUBLE,
	takeovers BIGINT NOT NULL,
	cancel TEXT,
	PRIMARY KEY (partition, id)
)
 WITHOUT ROWID;

CREATE INDEX threads_listed ON threads (partition, agent, updated_at, id);

CREATE INDEX threads_ready ON threads (ready) WHERE ready IS NOT NULL;

CREATE TABLE actions (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	run_id TEXT NOT NULL,
	call_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
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
	expires_at DOUBLE,
	PRIMARY KEY (partition, thread_id, run_id, call_id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX actions_expiring ON actions (expires_at) WHERE expires_at IS NOT NULL AND outcome IS NULL;

CREATE TABLE events (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	last BIGINT NOT NULL,
	size BIGINT NOT NULL,
	run_id TEXT NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (partition, thread_id, last),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE jobs (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	id TEXT NOT NULL,
	kind TEXT NOT NULL,
	run_id TEXT NOT NULL,
	payload TEXT NOT NULL,
	attempt BIGINT NOT NULL,
	ready DOUBLE,
	PRIMARY KEY (partition, thread_id, id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX jobs_ready ON jobs (ready) WHERE ready IS NOT NULL;

CREATE TABLE messages (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	turn BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	id TEXT NOT NULL,
	run_id TEXT NOT NULL,
	role TEXT NOT NULL,
	parts TEXT NOT NULL,
	metadata TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	PRIMARY KEY (partition, thread_id, turn, seq),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE UNIQUE INDEX messages_id ON messages (partition, thread_id, id);

CREATE TABLE runs (
	partition TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	id TEXT NOT NULL,
	turn BIGINT NOT NULL,
	agent TEXT NOT NULL,
	version TEXT NOT NULL,
	operation TEXT NOT NULL,
	request TEXT NOT NULL,
	digest TEXT NOT NULL,
	metadata TEXT NOT NULL,
	status TEXT NOT NULL,
	parent_run_id TEXT,
	attempt BIGINT NOT NULL,
	episode BIGINT NOT NULL,
	outcome TEXT,
	reason TEXT,
	stop_reason TEXT,
	usage TEXT,
	error TEXT,
	cancel TEXT,
	created_at DOUBLE NOT NULL,
	started_at DOUBLE,
	finished_at DOUBLE,
	PRIMARY KEY (partition, thread_id, id),
	FOREIGN KEY(partition, thread_id) REFERENCES threads (partition, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE UNIQUE INDEX runs_active ON runs (partition, thread_id) WHERE status IN ('running', 'suspended');

CREATE INDEX runs_queued ON runs (partition, thread_id, turn) WHERE status = 'queued';
