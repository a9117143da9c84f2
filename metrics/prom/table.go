package prom

import (
	"fmt"
	"slices"
	"strings"
)

// kind is the type of a metric.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// product is the part of Pawl to which a metric belongs. A process reports the metrics of one product.
type product int

const (
	pipelines product = iota
	archives
	fileService
	anyProduct
)

// metric is one row of the table.
type metric struct {
	product product
	name    string
	kind    kind
	labels  []string
	help    string
	buckets []float64 // of a histogram
}

// Names of metrics.
const (
	sourceDeliveries   = "pawl_source_deliveries_total"
	sourceRejected     = "pawl_source_rejected_total"
	sourceEvents       = "pawl_source_events_total"
	sourceLag          = "pawl_source_event_lag_seconds"
	sourceLastDelivery = "pawl_source_last_delivery_timestamp_seconds"

	events           = "pawl_events_total"
	eventsUnmatched  = "pawl_events_unmatched_total"
	attempts         = "pawl_attempts_total"
	attemptDuration  = "pawl_attempt_duration_seconds"
	attemptWait      = "pawl_attempt_wait_seconds"
	convergence      = "pawl_convergence_seconds"
	takeovers        = "pawl_takeovers_total"
	deaths           = "pawl_deaths_total"
	outage           = "pawl_outage"
	disordered       = "pawl_disordered_events_total"
	sequencerChanges = "pawl_sequencer_changes_total"
	unreadable       = "pawl_unreadable_rows_total"

	attemptsRunning = "pawl_attempts_running"
	runningBytes    = "pawl_attempts_running_bytes"
	backlog         = "pawl_backlog_events"
	backlogLimit    = "pawl_backlog_events_limit"
	slots           = "pawl_slots"

	rows          = "pawl_rows"
	rowsOldest    = "pawl_rows_oldest_unsettled_timestamp_seconds"
	rowsTruncated = "pawl_rows_truncated"
	rowsRead      = "pawl_rows_last_read_timestamp_seconds"

	swapDuration = "pawl_ledger_swap_duration_seconds"
	ledgerRows   = "pawl_ledger_rows_total"

	auditLast     = "pawl_audit_last_success_timestamp_seconds"
	auditDuration = "pawl_audit_duration_seconds"
	auditRunning  = "pawl_audit_running_since_timestamp_seconds"
	auditFailures = "pawl_audit_failures_total"
	auditFailed   = "pawl_audit_failed_timestamp_seconds"
	auditLosses   = "pawl_audit_losses_total"
	auditRepaired = "pawl_audit_repaired_total"
	auditWithheld = "pawl_audit_removals_withheld"

	archiveObjects   = "pawl_archive_objects_total"
	archiveRecords   = "pawl_archive_records_total"
	archiveMalformed = "pawl_archive_malformed_records_total"
	archiveGaps      = "pawl_archive_gaps_total"
	archiveShards    = "pawl_archive_shards"
	archiveHeld      = "pawl_archive_shards_held"
	archiveStopped   = "pawl_archive_shards_stopped"
	archiveStored    = "pawl_archive_stored_until_timestamp_seconds"
	archiveRetention = "pawl_archive_stream_retention_seconds"
	archiveRead      = "pawl_archive_last_read_timestamp_seconds"

	filesRequests = "pawl_files_requests_total"
	filesDuration = "pawl_files_request_duration_seconds"
	filesChanges  = "pawl_files_changes_total"
	filesCount    = "pawl_files"
	filesBytes    = "pawl_files_bytes"
	filesOrphans  = "pawl_files_orphans"
	filesAudit    = "pawl_files_audit_last_success_timestamp_seconds"

	ledgerRequests = "pawl_ledger_requests_total"
	ledgerSeconds  = "pawl_ledger_request_seconds_total"
	dynamoUnits    = "pawl_dynamodb_units_total"
	objectRequests = "pawl_object_store_requests_total"
	clockSkew      = "pawl_clock_skew_seconds"

	buildInfo = "pawl_build_info"
)

// seconds are the bounds of durations, from a quick action to an hour.
var seconds = []float64{.005, .025, .1, .25, 1, 2.5, 10, 30, 60, 300, 900, 3600}

// table has every metric. The tests compare docs/METRICS.md with it.
var table = []metric{
	{name: sourceDeliveries, kind: counter, labels: []string{"source", "result"}, help: "Messages by result: acknowledged, returned (the source delivers it again), or refused (not accepted, for example at shutdown)."},
	{name: sourceRejected, kind: counter, labels: []string{"source", "reason"}, help: "Messages that the source rejected: unauthorized (no valid token or signature), or unreadable."},
	{name: sourceEvents, kind: counter, labels: []string{"source"}, help: "Events in the messages of a source."},
	{name: sourceLag, kind: histogram, labels: []string{"source"}, help: "Time from an event until its message arrived.", buckets: seconds},
	{name: sourceLastDelivery, kind: gauge, labels: []string{"source"}, help: "Time of the last message; the start of the process until the first message."},

	{name: events, kind: counter, labels: []string{"pipeline", "verdict"}, help: "Events by the ledger's decision: raised (new), duplicate, or stale (older than the wanted version)."},
	{name: eventsUnmatched, kind: counter, help: "Events that match no pipeline."},
	{name: attempts, kind: counter, labels: []string{"pipeline", "result"}, help: "Attempts by result: committed, nothing_to_do, failed, uncounted (failed because of an outage), released (at shutdown), lost_lease, or abandoned (the result could not be stored). Failed includes the last attempt of a dead object."},
	{name: attemptDuration, kind: histogram, labels: []string{"pipeline"}, help: "Duration of attempts that committed or failed.", buckets: seconds},
	{name: attemptWait, kind: histogram, labels: []string{"pipeline"}, help: "Time for which an object waited for its attempt in this process.", buckets: seconds},
	{name: convergence, kind: histogram, labels: []string{"pipeline"}, help: "Time from the newest event of an object until its effect was committed. It is the service level that users notice.", buckets: seconds},
	{name: takeovers, kind: counter, labels: []string{"pipeline"}, help: "Attempts that took over an expired lease, because a process crashed or was frozen."},
	{name: deaths, kind: counter, labels: []string{"pipeline"}, help: "Objects that became dead. A death may count twice."},
	{name: outage, kind: gauge, labels: []string{"pipeline"}, help: "1 while the receiver of a pipeline is down, otherwise 0."},
	{name: disordered, kind: counter, labels: []string{"pipeline"}, help: "Events ignored as stale although their time was newer. The store's sequencer may have gone back."},
	{name: sequencerChanges, kind: counter, labels: []string{"pipeline"}, help: "Sequencers whose format differs from the one before."},
	{name: unreadable, kind: counter, labels: []string{"pipeline"}, help: "Reports of rows that this version cannot read. Their objects wait."},

	{name: attemptsRunning, kind: gauge, help: "Attempts that run now, also those in slots of a pipeline's own."},
	{name: slots, kind: gauge, help: "Slots of the process that pipelines without slots of their own share."},
	{name: runningBytes, kind: gauge, help: "Total size of the objects of these attempts."},
	{name: backlog, kind: gauge, help: "Unfinished events in memory."},
	{name: backlogLimit, kind: gauge, help: "Limit of unfinished events. Sources wait when it is reached."},

	{name: rows, kind: gauge, labels: []string{"pipeline", "state"}, help: "Rows of the ledger by state: pending, processing, stuck (expired lease), or failed (backing off). A single process of a ledger reports them, once a minute."},
	{name: rowsOldest, kind: gauge, labels: []string{"pipeline"}, help: "Event time of the oldest row that is neither settled nor dead. Absent if there is none."},
	{name: rowsTruncated, kind: gauge, labels: []string{"pipeline"}, help: "1 if there were more than 10,000 rows, so that pawl_rows is too low and the oldest row may be missing."},
	{name: rowsRead, kind: gauge, help: "Time at which this process last read the rows. Absent in processes that do not read them."},

	{name: swapDuration, kind: histogram, help: "Duration of a batch of conditional writes to the ledger; on DynamoDB, of a single write.", buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}},
	{name: ledgerRows, kind: counter, labels: []string{"result"}, help: "Conditional writes of rows: written or refused."},

	{name: auditLast, kind: gauge, help: "Start of the last completed audit by any process, as far as this process knows."},
	{name: auditDuration, kind: gauge, help: "Duration of the last audit of this process."},
	{name: auditRunning, kind: gauge, help: "Time at which this process began or resumed the audit that it runs now. Absent if it runs none."},
	{name: auditFailures, kind: counter, help: "Audits of this process that ended or could not begin because of an error. Scheduled audits are retried every 5 minutes."},
	{name: auditFailed, kind: gauge, help: "Time of this process's last failed audit. Absent if an audit of any process has succeeded since."},
	{name: auditLosses, kind: counter, labels: []string{"pipeline", "kind"}, help: "Losses that audits of this process found, by kind."},
	{name: auditRepaired, kind: counter, labels: []string{"pipeline"}, help: "Losses that audits of this process wrote to the ledger."},
	{name: auditWithheld, kind: gauge, labels: []string{"pipeline"}, help: "Removals that the last audit of this process withheld because there were too many."},

	{product: archives, name: archiveObjects, kind: counter, labels: []string{"archive"}, help: "Objects with records that this process stored. An object may count twice after a takeover."},
	{product: archives, name: archiveRecords, kind: counter, labels: []string{"archive"}, help: "Records of the stream in these objects."},
	{product: archives, name: archiveMalformed, kind: counter, labels: []string{"archive"}, help: "Malformed records, which are stored below _pawl/malformed/."},
	{product: archives, name: archiveGaps, kind: counter, labels: []string{"archive", "kind"}, help: "Gaps by kind: expired (a record was lost), possible (records may have been lost), or malformed (all records of the range are stored below _pawl/malformed/)."},
	{product: archives, name: archiveShards, kind: gauge, labels: []string{"archive"}, help: "Shards that are not finished, but whose parents are finished. All processes of an archive report the same number."},
	{product: archives, name: archiveHeld, kind: gauge, labels: []string{"archive"}, help: "Shards that this process stores."},
	{product: archives, name: archiveStopped, kind: gauge, labels: []string{"archive"}, help: "Shards that this process failed to store and retries."},
	{product: archives, name: archiveStored, kind: gauge, labels: []string{"archive"}, help: "Arrival time up to which every open shard is stored, from the ledger. It is up to 70 minutes too early if a shard receives few records. Absent until it is known."},
	{product: archives, name: archiveRetention, kind: gauge, labels: []string{"archive"}, help: "Retention of the stream."},
	{product: archives, name: archiveRead, kind: gauge, labels: []string{"archive"}, help: "Time at which this process last read the progress of all shards."},

	{product: fileService, name: filesRequests, kind: counter, labels: []string{"route", "code"}, help: "Requests by route, for example POST /v1/uploads, and class of the status code: 2xx to 5xx. The route is other if no path matches."},
	{product: fileService, name: filesDuration, kind: histogram, labels: []string{"route"}, help: "Duration of requests.", buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}},
	{product: fileService, name: filesChanges, kind: counter, labels: []string{"state"}, help: "Files whose state this process changed after it compared them with their object, by new state: indexed, lost (the object is missing or different), deleted, purging, gone, or expired."},
	{product: fileService, name: filesCount, kind: gauge, labels: []string{"state"}, help: "Files by state at the last audit of this process. Absent until the first audit, an hour after the start."},
	{product: fileService, name: filesBytes, kind: gauge, labels: []string{"state"}, help: "Total size of these files."},
	{product: fileService, name: filesOrphans, kind: gauge, help: "Objects and multipart uploads without a row that the last audit of this process found and kept."},
	{product: fileService, name: filesAudit, kind: gauge, help: "Time of the last complete audit by this process."},

	{product: anyProduct, name: ledgerRequests, kind: counter, labels: []string{"operation", "result"}, help: "Requests to the ledger, or to the index of files, by operation (swap, apply, load, due, or scan) and result: ok, refused (another process had changed a row), unclear (a write may have landed), or error."},
	{product: anyProduct, name: ledgerSeconds, kind: counter, labels: []string{"operation"}, help: "Total duration of these requests. Concurrent requests add up. A scan lasts until its reader has finished."},
	{product: anyProduct, name: dynamoUnits, kind: counter, labels: []string{"kind"}, help: "Units of DynamoDB that these requests consumed: read or write. Refused writes are not included, because DynamoDB does not report their units."},
	{product: anyProduct, name: objectRequests, kind: counter, labels: []string{"operation", "code"}, help: "Requests to the object store by operation of the S3 API, and class of the status code: 2xx to 5xx, or none without a response. Repeated attempts of a request count."},
	{product: anyProduct, name: clockSkew, kind: gauge, help: "Smallest difference between the object store's clock and this machine's that explains the time in the store's last response. Positive if the store is ahead. Absent before the first response."},

	{product: anyProduct, name: buildInfo, kind: gauge, labels: []string{"version"}, help: "Always 1. The label has the version."},
}

// Series returns the names of all series with their labels. A histogram has three series.
func Series() map[string][]string {
	all := map[string][]string{}
	for i := range table {
		m := &table[i]
		if m.kind != histogram {
			all[m.name] = m.labels
			continue
		}
		all[m.name+"_sum"], all[m.name+"_count"] = m.labels, m.labels
		all[m.name+"_bucket"] = append(slices.Clone(m.labels), "le")
	}
	return all
}

// Documentation returns the table of all metrics in Markdown.
func Documentation() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for i := range table {
		m := &table[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help)
	}
	return b.String()
}
