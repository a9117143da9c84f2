// Package config reads pawl.yaml.
//
// The file is YAML, read strictly: a field that is not known here is an error
// that names it, its place and the nearest known one. "${NAME}" in a value
// stands for an environment variable; it is replaced after the YAML was read,
// so that no variable's content can add to the file's structure.
//
// The types below are the file's shape and nothing more: what they mean is
// decided by packages pawl, s3bucket and the like, which also check it. Ledgers,
// sources and actions come in kinds, which a [Table] lists.
package config

// File is the whole configuration.
type File struct {
	// Where the rows are kept: "sqlite:FILE", "postgres://USER@HOST/DATABASE" for
	// workers on several machines, or "memory" for nothing that outlives the
	// process. A relative FILE counts from the folder of this file. Default:
	// "sqlite:pawl.db".
	Ledger Ledger `yaml:"ledger"`
	// The object store.
	Objects Objects `yaml:"objects"`
	// Where notifications come from.
	Sources []Source `yaml:"sources"`
	// What is done, with which objects.
	Pipelines []Pipeline `yaml:"pipelines" jsonschema:"required,minItems=1"`
	// Streams of records that are stored in a bucket, each record once.
	Archives []Archive `yaml:"archives" jsonschema:"minItems=1"`
	// A service that uploads files into a bucket and keeps an index of them: "pawl
	// files serve".
	Files *Files `yaml:"files"`
	// How the pipelines run as a function of AWS Lambda: docs/AWS.md.
	Lambda Lambda `yaml:"lambda"`
	// How long one worker may hold an object without a sign of life.
	Lease Lease `yaml:"lease"`
	// How often and how fast a failing object is tried again.
	Retry Retry `yaml:"retry"`
	// When the objects are compared with the ledger, to find what notifications
	// have lost.
	Audit Audit `yaml:"audit"`
	// How many objects are handled at a time. Default: 16.
	Concurrency int `yaml:"concurrency"`
	// How many events are taken in before sources have to wait. Default: 1000.
	MaxBacklogEvents int `yaml:"max_backlog_events" was:"backlog"`
	// The summed size of the objects that are handled at a time, like "512MiB".
	// Default: 1GiB.
	MaxBytes Size `yaml:"max_bytes"`
	// How often the ledger is asked for work that no notification brings.
	// Default: 1s.
	SweepInterval Duration `yaml:"sweep_interval" was:"sweep"`
	// How long running work may take at shutdown. Default: 20s.
	ShutdownTimeout Duration `yaml:"shutdown_timeout" was:"grace"`
}

// Objects says how the object store is reached. Credentials come from where the
// AWS tools look for them: environment, shared files, instance role.
type Objects struct {
	// URL of an S3-compatible store. Default: Amazon S3.
	Endpoint string `yaml:"endpoint"`
	// Default: what the AWS tools would use.
	Region string `yaml:"region"`
	// Put the bucket into the path of the URL rather than into the host's
	// name. Most stores other than Amazon's need it.
	PathStyle bool `yaml:"path_style"`
	// The store may hide an object for a while after it was written.
	EventuallyConsistent bool `yaml:"eventually_consistent" was:"eventual"`
}

// Source is one place that notifications come from: a map with one key.
type Source struct {
	Part `yaml:",inline" part:"source"`
}

// Pipeline is one effect on a set of objects.
type Pipeline struct {
	// Letters a-z, digits, "-", "_" and "."; at most 64.
	Name string `yaml:"name" jsonschema:"required"`
	// Which objects.
	Match Match `yaml:"match" jsonschema:"required"`
	// What decides about an object: the store (what it holds now; the
	// default), or the event alone.
	Order Order `yaml:"order" jsonschema:"enum=store,enum=event"`
	// What is handled once: the object, whose latest version wins (the
	// default), or every version of it.
	Identity Identity `yaml:"identity" jsonschema:"enum=object,enum=version"`
	// How many objects are handled at a time, in slots that no other pipeline
	// takes. Default: shared. An image pipeline has one for every two cores;
	// others share those of the file's concurrency.
	Concurrency int `yaml:"concurrency"`

	// What is done: one of the actions.
	Action Part `yaml:",inline" part:"action"`
}

// Files is the service that uploads files into a bucket and keeps an index of them.
type Files struct {
	// Where the objects go. The prefix belongs to this service alone.
	To Location `yaml:"to" jsonschema:"required"`
	// SQLite file of the index, counted from the folder of this file, or
	// postgres://USER@HOST/DATABASE. Default: the database of the ledger if that is in
	// PostgreSQL, else files.db.
	Index Secret `yaml:"index"`
	// Address to listen on. Default: 127.0.0.1:8090.
	Listen string `yaml:"listen"`
	// Secret of at least 32 bytes that signs places in lists, and tokens (HS256)
	// unless there are keys.
	Secret Secret `yaml:"secret" jsonschema:"required"`
	// JSON Web Key Set that tokens are signed with: an https:// URL, or a file, counted
	// from the folder of this file, in which each key names its alg: HS256, RS256 or
	// ES256.
	Keys string `yaml:"keys"`
	// What tokens must be for (aud). Default: none.
	Audience string `yaml:"audience"`
	// Issuer that tokens must name (iss). Default: none.
	Issuer string `yaml:"issuer"`
	// Bytes that an entity may use. Each file counts at least 4KiB, and until its bytes
	// are removed from the bucket. Default: 10GiB.
	Quota Size `yaml:"quota"`
	// Maximum number of uploads of an entity that have begun and are not complete.
	// Default: 1000.
	OpenUploads int `yaml:"open_uploads"`
	// The largest file, at most 5TiB; what is more than 5GiB comes in parts. Default: 1GiB.
	MaxSize Size `yaml:"max_size"`
	// How long the longest upload may take after its URL has expired: an upload that
	// began in time may end later. An upload that takes longer is lost although the store
	// answers 200. Default: 1h.
	LongestUpload Duration `yaml:"longest_upload"`
	// Content types of files that browsers may show. Others are downloaded, because a page
	// or picture with a script would run on the store's origin. Default: image/jpeg,
	// image/png, image/gif, image/webp, image/avif, video/mp4, audio/mpeg.
	InlineTypes []string `yaml:"inline_types"`
	// URL by which users reach the object store, if it is not the endpoint.
	PublicEndpoint string `yaml:"public_endpoint"`
	// Start although the object store accepts uploads with forged signatures, as MinIO
	// does. Default: false.
	AcceptForgeableUploads bool `yaml:"accept_forgeable_uploads"`
}

// Archive stores the records of a stream in a bucket.
type Archive struct {
	// Letters a-z, digits, "-", "_" and "."; at most 64. The ledger keeps its
	// progress under this name.
	Name string `yaml:"name" jsonschema:"required"`
	// The stream.
	Kinesis Kinesis `yaml:"kinesis" jsonschema:"required"`
	// Where the objects go. The prefix belongs to this archive alone.
	To Location `yaml:"to" jsonschema:"required"`
	// What objects are written in: ndjson or parquet, and their compression:
	// ndjson.gz (the default), ndjson.zst, gz.parquet or zst.parquet.
	Format string `yaml:"format"`
	// Where the archive begins: trim_horizon (the default), latest, or a time like
	// 2026-01-02T15:04:05Z. It counts when the archive is made, and never again.
	From string `yaml:"from"`
	// How large an object becomes, before compression. Default: 16MiB.
	FlushBytes Size `yaml:"flush_bytes" was:"bytes"`
	// How long records wait for others of their minute. Default: 1m.
	FlushInterval Duration `yaml:"flush_interval" was:"age"`
}

// Kinesis is a stream of Kinesis Data Streams.
type Kinesis struct {
	// Name or ARN of the stream.
	Stream string `yaml:"stream" jsonschema:"required"`
	// Default: that of the ARN, or what the AWS tools would use.
	Region string `yaml:"region"`
	// URL of a server that speaks the protocol of Kinesis. Default: Amazon's.
	Endpoint string `yaml:"endpoint"`
}

// Match selects objects.
type Match struct {
	// The bucket's name.
	Bucket string `yaml:"bucket" jsonschema:"required"`
	// What the key begins with. Default: anything.
	Prefix string `yaml:"prefix"`
	// What the key ends with: any of these. Default: anything.
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
	// "scheduled" if the function is invoked every minute with {"pawl":"sweep"}. A message
	// is then acknowledged as soon as the ledger has stored it. Default: "none", and a
	// message is acknowledged when its objects are settled.
	Sweep LambdaSweep `yaml:"sweep" jsonschema:"enum=none,enum=scheduled"`
	// How notifications are written. Pipelines in event order need it. Default: auto.
	Dialect Dialect `yaml:"dialect"`
}

// LambdaSweep is "none" or "scheduled".
type LambdaSweep string

func (s *LambdaSweep) parse(text string) error { return oneOf(s, text, "none", "scheduled") }

func (LambdaSweep) wants() string { return "none or scheduled" }

// Lease bounds how long one worker may hold an object without a sign of life.
type Lease struct {
	// Default: 30s, at least 1s.
	TTL Duration `yaml:"ttl"`
	// How far the clocks of two machines may differ. Default: 5s.
	Skew Duration `yaml:"skew"`
	// How late a write may still land. Default: 15m.
	LateWriteWindow Duration `yaml:"late_write_window" was:"horizon"`
}

// Retry says how often and how fast a failing object is tried again.
type Retry struct {
	// How many attempts before the object is dead. Default: 8.
	Attempts int `yaml:"attempts"`
	// The first back-off; each further one is twice as long. Default: 1s.
	Base Duration `yaml:"base"`
	// The longest back-off. Default: 5m.
	Max Duration `yaml:"max"`
	// How long attempts are not counted while the receiver of a pipeline is down.
	// Default: 24h.
	Outage Duration `yaml:"outage"`
}

// Audit says when the objects are compared with the ledger, and what is left alone.
type Audit struct {
	// How often "pawl run" does it, of all processes over the ledger one at a
	// time; "pawl audit" does it once. Default: never.
	Every Duration `yaml:"every"`
	// How late a notification may be: what has changed since is left alone. In
	// event order it must exceed max_delay. Default: 12h; in event order max_delay
	// and an hour.
	SettleWindow Duration `yaml:"settle_window" was:"settle"`
	// How long the row of a removed object is kept. It must exceed settle_window and
	// max_delay. Default: 720h.
	RowRetention Duration `yaml:"row_retention" was:"retain"`
	// How late a notification may be at most. Default: 24h.
	MaxDelay Duration `yaml:"max_delay"`
	// Which rows go after row_retention: those of removed objects (the default), or all
	// that are settled. A loss about an object whose row is gone is never found.
	// Audits pass over objects without a row that are older than what was dropped.
	Purge Purge `yaml:"purge" jsonschema:"enum=removed,enum=settled"`
}

// Purge is "removed" or "settled".
type Purge string

func (p *Purge) parse(text string) error { return oneOf(p, text, "removed", "settled") }

func (Purge) wants() string { return "removed or settled" }
