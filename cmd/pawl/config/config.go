// Package config reads pawl.yaml.
//
// Parsing is strict: an unknown field is an error with its position and the most similar
// known field. "${NAME}" in a value stands for an environment variable. It is replaced
// after the YAML is parsed, so that variables cannot change the structure of the file.
//
// The types of this package only describe the structure of the file. Packages pawl,
// s3bucket and others interpret and validate the values. A [Table] lists the kinds of
// ledgers, sources and actions.
package config

// File is the whole configuration.
type File struct {
	// Storage of the rows. "sqlite:FILE" is a file; a relative FILE is relative to the folder
	// of this file. Use "postgres://USER@HOST/DATABASE" or "dynamodb://TABLE" for workers on
	// several machines. "memory" is lost when the process ends. Default: "sqlite:pawl.db".
	Ledger Ledger `yaml:"ledger"`
	// The object store.
	Objects Objects `yaml:"objects"`
	// Sources of notifications.
	Sources []Source `yaml:"sources"`
	// Effects on sets of objects.
	Pipelines []Pipeline `yaml:"pipelines" jsonschema:"required,minItems=1"`
	// Streams whose records are stored in a bucket exactly once.
	Archives []Archive `yaml:"archives" jsonschema:"minItems=1"`
	// A service for uploads to a bucket with an index of the files: "pawl files serve".
	Files *Files `yaml:"files"`
	// Settings for AWS Lambda: docs/AWS.md.
	Lambda Lambda `yaml:"lambda"`
	// Leases of objects.
	Lease Lease `yaml:"lease"`
	// Retries of failed attempts.
	Retry Retry `yaml:"retry"`
	// Audits, which compare the objects with the ledger to find lost notifications.
	Audit Audit `yaml:"audit"`
	// Maximum number of objects that a process handles at the same time. Default: 16.
	Concurrency int `yaml:"concurrency"`
	// Maximum number of events in memory. Sources wait when it is reached. Default: 1000.
	MaxBacklogEvents int `yaml:"max_backlog_events" was:"backlog"`
	// Maximum total size of the objects that are handled at the same time, for example
	// "512MiB". Default: 1GiB.
	MaxBytes Size `yaml:"max_bytes"`
	// Interval between queries for due rows: retries, expired leases and verifications.
	// Default: 1s, at least 10ms.
	SweepInterval Duration `yaml:"sweep_interval" was:"sweep"`
	// Time for running work to finish at shutdown. Default: 20s.
	ShutdownTimeout Duration `yaml:"shutdown_timeout" was:"grace"`
	// Listener for the dashboard, probes and metrics of "pawl run", "pawl archive run" and
	// "pawl files serve": docs/OPERATING.md, docs/METRICS.md.
	Admin Admin `yaml:"admin"`
	// Messages of "pawl run" and "pawl archive run" about conditions that need an operator:
	// docs/OPERATING.md.
	Alerts Alerts `yaml:"alerts"`
}

// Alerts configures messages in the format of Standard Webhooks.
type Alerts struct {
	// URL for the POST requests: http or https.
	URL Secret `yaml:"url" jsonschema:"required"`
	// Key of the signatures, "whsec_…".
	Secret Secret `yaml:"secret" jsonschema:"required"`
	// Age from which an unsettled row is an alert. Default: 15m.
	OldestAfter Duration `yaml:"oldest_after"`
}

// Admin is a listener for the dashboard, probes, metrics and profiles.
type Admin struct {
	// Address to listen on, for example 127.0.0.1:8080. Default: none.
	Listen string `yaml:"listen"`
	// Bearer token for the profiles at /debug/pprof/, and password of the dashboard. Without it,
	// there are no profiles, and only a loopback address serves the dashboard, without its actions.
	Token Secret `yaml:"token"`
}

// Objects is the connection to the object store. Credentials come from the default chain
// of the AWS SDK: environment, shared files, instance role.
type Objects struct {
	// URL of an S3-compatible store. Default: Amazon S3.
	Endpoint string `yaml:"endpoint"`
	// Region of the store. Default: from the AWS configuration.
	Region string `yaml:"region"`
	// Put the bucket into the path of the URL instead of the host name. Most stores other
	// than Amazon S3 need it.
	PathStyle bool `yaml:"path_style"`
	// The store may not show an object for a while after it was written.
	EventuallyConsistent bool `yaml:"eventually_consistent" was:"eventual"`
}

// Source is one source of notifications: a map with one key.
type Source struct {
	Part `yaml:",inline" part:"source"`
	// Time without a delivery after which "alerts" reports the silence of the source, at least
	// 1m. Default: never.
	SilentAfter Duration `yaml:"silent_after"`
}

// Pipeline is one effect on a set of objects.
type Pipeline struct {
	// Name of the pipeline: letters a-z, digits, "-", "_" and "."; at most 64 characters.
	Name string `yaml:"name" jsonschema:"required"`
	// Objects that the pipeline processes.
	Match Match `yaml:"match" jsonschema:"required"`
	// Source of truth for an object: the current state of the store (the default), or the
	// event alone.
	Order Order `yaml:"order" jsonschema:"enum=store,enum=event"`
	// Unit of work. With object (the default), only the latest version of an object counts.
	// With version, Pawl processes each version.
	Identity Identity `yaml:"identity" jsonschema:"enum=object,enum=version"`
	// Maximum number of objects that the pipeline handles at the same time in its own slots.
	// Default: one per two cores for images; other pipelines share the slots of the top-level
	// concurrency.
	Concurrency int `yaml:"concurrency"`

	// One of the actions.
	Action Part `yaml:",inline" part:"action"`
}

// Files is the service for uploads to a bucket with an index of the files.
type Files struct {
	// Location of the objects. Nothing else may use the prefix.
	To Location `yaml:"to" jsonschema:"required"`
	// Storage of the index: a SQLite file, relative to the folder of this file,
	// postgres://USER@HOST/DATABASE, or dynamodb://TABLE. Default: the database of the
	// ledger if it is PostgreSQL or DynamoDB, otherwise files.db.
	Index Secret `yaml:"index"`
	// Address to listen on. Default: 127.0.0.1:8090.
	Listen string `yaml:"listen"`
	// Secret of at least 32 bytes. It signs page cursors, and also tokens (HS256) unless
	// keys is set.
	Secret Secret `yaml:"secret" jsonschema:"required"`
	// JSON Web Key Set that verifies tokens: an https:// URL, or a file, relative to the
	// folder of this file. Each key names its alg: HS256, RS256 or ES256.
	Keys string `yaml:"keys"`
	// Audience that tokens must name (aud). Default: none.
	Audience string `yaml:"audience"`
	// Issuer that tokens must name (iss). Default: none.
	Issuer string `yaml:"issuer"`
	// Bytes that an entity may use. Each file counts as at least 4KiB until its bytes are
	// removed from the bucket. Default: 10GiB.
	Quota Size `yaml:"quota"`
	// Maximum number of incomplete uploads of an entity. Default: 1000.
	OpenUploads int `yaml:"open_uploads"`
	// Maximum size of a file, at most 5TiB. Files above 5GiB need an upload in parts.
	// Default: 1GiB.
	MaxSize Size `yaml:"max_size"`
	// Maximum time between the expiry of an upload's URL and the end of the upload. If an
	// upload ends later, its bytes are lost, although the store responds with 200. Default: 1h.
	LongestUpload Duration `yaml:"longest_upload"`
	// Content types that browsers may display. Browsers download other files, because a
	// script in a page or picture would run on the origin of the store. Default: image/jpeg,
	// image/png, image/gif, image/webp, image/avif, video/mp4, audio/mpeg.
	InlineTypes []string `yaml:"inline_types"`
	// URL of the object store for users. Default: objects.endpoint.
	PublicEndpoint string `yaml:"public_endpoint"`
	// Start although the object store accepts uploads with forged signatures, for example
	// MinIO. Default: false.
	AcceptForgeableUploads bool `yaml:"accept_forgeable_uploads"`
}

// Archive stores the records of a stream in a bucket.
type Archive struct {
	// Name of the archive: letters a-z, digits, "-", "_" and "."; at most 64 characters. The
	// ledger stores the progress under this name.
	Name string `yaml:"name" jsonschema:"required"`
	// The stream.
	Kinesis Kinesis `yaml:"kinesis" jsonschema:"required"`
	// Location of the objects. Nothing else may use the prefix.
	To Location `yaml:"to" jsonschema:"required"`
	// Format of new objects: ndjson, ndjson.gz (the default), ndjson.zst, parquet,
	// gz.parquet or zst.parquet.
	Format string `yaml:"format"`
	// Position of the first record of a new archive: trim_horizon (the default), latest, or a
	// time such as 2026-01-02T15:04:05Z. Existing archives ignore this field.
	From string `yaml:"from"`
	// Size at which Pawl completes an object, before compression. Default: 16MiB.
	FlushBytes Size `yaml:"flush_bytes" was:"bytes"`
	// Time after which Pawl completes an object, counted from its first record. Default: 1m.
	FlushInterval Duration `yaml:"flush_interval" was:"age"`
}

// Kinesis is a Kinesis data stream.
type Kinesis struct {
	// Name or ARN of the stream.
	Stream string `yaml:"stream" jsonschema:"required"`
	// Region of the stream. Default: from the ARN or the AWS configuration.
	Region string `yaml:"region"`
	// URL of a server with the Kinesis API. Default: Amazon Kinesis.
	Endpoint string `yaml:"endpoint"`
}

// Match selects objects.
type Match struct {
	// The bucket's name.
	Bucket string `yaml:"bucket" jsonschema:"required"`
	// Prefix of the key. Default: all keys.
	Prefix string `yaml:"prefix"`
	// Suffixes of the key, of which one must match. Default: all keys.
	Suffix []string `yaml:"suffix"`
}

// Order is "store" or "event".
type Order string

func (o *Order) parse(text string) error { return oneOf(o, text, "store", "event") }

func (Order) wants() string { return "store or event" }

// Identity is "object" or "version".
type Identity string

func (i *Identity) parse(text string) error { return oneOf(i, text, "object", "version") }

func (Identity) wants() string { return "object or version" }

// Lambda configures a function of AWS Lambda. Other commands ignore it.
type Lambda struct {
	// "scheduled" if a schedule invokes the function every minute with {"pawl":"sweep"}. The
	// function then acknowledges a message as soon as the ledger has stored it. With "none",
	// the default, the function acknowledges a message when its objects are settled.
	Sweep LambdaSweep `yaml:"sweep" jsonschema:"enum=none,enum=scheduled"`
	// Format of the notifications. Required for pipelines with order: event. Default: auto.
	Dialect Dialect `yaml:"dialect"`
}

// LambdaSweep is "none" or "scheduled".
type LambdaSweep string

func (s *LambdaSweep) parse(text string) error { return oneOf(s, text, "none", "scheduled") }

func (LambdaSweep) wants() string { return "none or scheduled" }

// Lease configures the leases of objects.
type Lease struct {
	// Time after which a lease expires if its worker does not renew it. Default: 30s, at
	// least 1s.
	TTL Duration `yaml:"ttl"`
	// Maximum difference between the clocks of two machines. Default: 5s.
	Skew Duration `yaml:"skew"`
	// Maximum time until the store applies a write whose response was lost. Default: 15m.
	LateWriteWindow Duration `yaml:"late_write_window" was:"horizon"`
}

// Retry configures retries.
type Retry struct {
	// Maximum number of attempts. The object is dead afterwards. Default: 8.
	Attempts int `yaml:"attempts"`
	// First back-off. It doubles with each attempt. Default: 1s.
	Base Duration `yaml:"base"`
	// Maximum back-off. Default: 5m.
	Max Duration `yaml:"max"`
	// Time during which attempts do not count if the receiver of a pipeline is down. Default:
	// 24h.
	Outage Duration `yaml:"outage"`
}

// Audit configures audits and purges.
type Audit struct {
	// Interval between audits of "pawl run". Only one process of a ledger audits at a time.
	// "pawl audit" runs one audit. Default: never.
	Every Duration `yaml:"every"`
	// An audit ignores objects that changed within this time, because their notification
	// may still arrive. With order: event it must exceed max_delay. Default: 12h; with
	// order: event max_delay plus 1h.
	SettleWindow Duration `yaml:"settle_window" was:"settle"`
	// Time for which the row of a removed object is retained. It must exceed settle_window
	// and max_delay. Default: 720h.
	RowRetention Duration `yaml:"row_retention" was:"retain"`
	// Maximum delay of a notification. Default: 24h.
	MaxDelay Duration `yaml:"max_delay"`
	// Rows that a purge deletes after row_retention: rows of removed objects (the default), or
	// all settled rows. Audits do not find losses of objects whose rows were purged, and they
	// skip objects that have no row and are older than the purged rows.
	Purge Purge `yaml:"purge" jsonschema:"enum=removed,enum=settled"`
}

// Purge is "removed" or "settled".
type Purge string

func (p *Purge) parse(text string) error { return oneOf(p, text, "removed", "settled") }

func (Purge) wants() string { return "removed or settled" }
