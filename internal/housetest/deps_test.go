package housetest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// layers lists the packages of this module that each package imports outside of tests, with a reason for
// each. "." is package pawl. Packages may only import packages above them. The table is exact, so that a
// new line needs a review.
var layers = map[string]map[string]string{
	"internal/logthrottle": {},
	"internal/extsort":     {},
	"internal/process":     {},
	"internal/format":      {},

	// Conditional writes, events, rows, buckets and sources.
	"cell":  {},
	"event": {},
	"store": {},
	"ledger": {
		"cell":             "A register serves as a cell, which can hold a lease.",
		"event":            "A row is about an object, and an event with its sequencer raises the row's Want.",
		"internal/format":  "It checks the version of rows and registers.",
		"internal/process": "The ledger waits before it retries a swap.",
		"store":            "Rows and registers are records of the store.",
	},
	"bucket": {
		"cell":  "An object serves as a cell, and a conditional write to it follows the rules of a cell.",
		"event": "A bucket and a key name an object.",
	},
	"source": {
		"event": "A delivery carries events, and a source declares their dialect.",
	},

	// Decisions, and their execution.
	"engine": {
		"event":  "Each input of the engine is an event about an object.",
		"ledger": "The engine applies the pure transitions of rows and asks for swaps of them.",
	},
	"archive": {
		"bucket":           "The archive puts its objects into a bucket and lists them.",
		"cell":             "The claim, the checkpoints, and the archive's objects are written as cells.",
		"doctor":           "It proves that the store honours conditions before the archive writes the first record.",
		"event":            "Bucket and key name an object of the archive.",
		"internal/format":  "It checks the version of the claim file and of registers.",
		"internal/process": "A worker uses it to wait, to make nonces and to name itself.",
		"ledger":           "Checkpoints of shards are registers of a ledger.",
		"lock":             "A worker holds the lease of a shard while it archives the shard.",
	},
	"doctor": {
		"bucket":           "The checks write to the bucket that they examine and read from it.",
		"cell":             "The checks resolve unclear answers as all conditional writes do.",
		"event":            "The checks name their objects by bucket and key.",
		"internal/process": "The checks wait between two requests.",
	},
	"files": {
		"internal/format": "It checks the version of the index's records.",
		"source":          "A notification makes the sink of the file service reconcile its file.",
		"store":           "Files, entities, keys and quotas are records of the store.",
	},
	"lock": {
		"bucket":           "The record of a lock is an object in a bucket.",
		"cell":             "A lease is kept in a cell by conditional writes.",
		"doctor":           "It proves that the store honours conditions before a lock writes the first lease.",
		"event":            "A bucket and a key name the object of a lock.",
		"internal/format":  "It checks the version of a lease.",
		"internal/process": "A lock waits between two requests and makes nonces by it.",
		"ledger":           "A lock can be a register of a ledger instead of an object.",
	},
	"worker": {
		"bucket":               "The worker reads the object and pins its output in a bucket.",
		"engine":               "The worker carries out what the engine decides and tells it the results.",
		"event":                "A task says which object has changed and how.",
		"internal/logthrottle": "Warnings of a lasting outage are logged once in a while.",
		"internal/process":     "A worker names itself and marks its writes with nonces by it.",
		"ledger":               "The worker loads, swaps and completes rows.",
		"source":               "The worker is the sink of all sources.",
	},
	"audit": {
		"bucket":           "An audit lists the bucket, and looks up the objects that it doubts.",
		"cell":             "An audit replaces its checkpoint as a cell.",
		"engine":           "Findings and results are reported like the reports of the engine.",
		"event":            "An audit decides for each object whether an event about it was lost.",
		"internal/format":  "It encodes and decodes checkpoints, reports and purge watermarks.",
		"internal/process": "A report names the process, and the schedule waits for the next audit.",
		"ledger":           "An audit compares rows with the listing and raises those that lag behind.",
		"lock":             "Only one process at a time audits a pipeline.",
		"worker":           "An audit identifies contents as the worker does, and reports to the worker's observer.",
	},
	".": {
		"audit":  "Pawl runs the scheduled audits, and the purge of old rows.",
		"bucket": "A pipeline reads its objects and writes its output through a store of objects.",
		"engine": "The function that observes a Pawl gets the engine's reports.",
		"event":  "A task and the checks of the configuration name objects and dialects.",
		"ledger": "Pawl keeps the rows of its pipelines in a ledger, and completes tasks in transactions.",
		"source": "Pawl runs the sources of its configuration.",
		"store":  "The caller gives the record store that holds the ledger.",
		"worker": "Pawl runs one worker for all pipelines.",
	},

	// Drivers depend on their own interface, not on each other.
	"store/memory": {
		"store": "It implements the record store.",
	},
	"store/dynamo": {
		"store": "It implements the record store.",
	},
	"store/postgres": {
		"store": "It implements the record store.",
	},
	"store/sqlite": {
		"store": "It implements the record store.",
	},
	"bucket/membucket": {
		"bucket": "It implements the store of objects.",
		"event":  "Each call names an object.",
	},
	"bucket/s3bucket": {
		"bucket": "It implements the store of objects.",
		"event":  "Each call names an object.",
	},
	"source/lambdasource": {
		"event":  "It parses the events in an invocation's payload.",
		"source": "It implements a source.",
	},
	"source/replaysource": {
		"event":  "It parses the events of recorded messages.",
		"source": "It implements a source.",
	},
	"source/sqssource": {
		"event":                "It parses the events of a queue's messages.",
		"internal/logthrottle": "Warnings about a failing queue are logged once in a while.",
		"internal/process":     "The source waits before it uses the queue again.",
		"source":               "It implements a source.",
	},
	"source/webhooksource": {
		"event":                "It parses the events in a request's body.",
		"internal/logthrottle": "Warnings about rejected requests are logged once in a while.",
		"source":               "It implements a source.",
	},
	"awslambda": {
		".":                   "Each invocation runs a Pawl.",
		"engine":              "The notices of an invocation feed its metrics.",
		"event":               "The handler names the dialect, and quotes an unknown request in an error.",
		"internal/format":     "It encodes and decodes the time of the last sweep.",
		"ledger":              "The time of the last sweep is a register of the ledger.",
		"source/lambdasource": "It reads the payload, and returns the response.",
	},
	"action": {
		".":     "The facts that receivers get are made of a task.",
		"event": "The facts say whether the object was created or removed.",
	},
	"action/copyaction": {
		".":      "It implements a handler.",
		"bucket": "It asks the store of objects to copy.",
		"doctor": "It proves that the store honours conditions on copies before the store copies an object.",
	},
	"action/execaction": {
		".":      "It implements a handler.",
		"action": "The program gets the facts, and the error holds an excerpt of its output.",
		"event":  "Only a created object is downloaded for the program.",
	},
	"action/httpaction": {
		".":      "It implements a handler.",
		"action": "The request carries the facts, and the error holds an excerpt of the answer.",
	},
	"action/imageaction": {
		".":                                   "It implements a handler.",
		"action/imageaction/internal/libwebp": "It writes WebP pictures.",
	},
	"action/imageaction/internal/libwebp": {},
	"archive/encode": {
		"archive": "It implements the codecs for an archive's records.",
	},
	"files/filesapi": {
		"files": "The API begins, lists and deletes files through the service.",
	},
	"files/s3objects": {
		"files": "It implements the objects of the file service in a bucket of S3.",
	},
	"files/server": {
		"bucket":          "The server starts even if the bucket is unavailable.",
		"bucket/s3bucket": "The server checks the bucket on S3 before it serves.",
		"event":           "The log names the bucket and prefix of the files.",
		"files":           "The server runs the file service with its sweeps and audits.",
		"files/filesapi":  "The server serves the API.",
		"files/s3objects": "The server keeps the files as objects of the bucket.",
		"source":          "The server runs a source of notifications.",
		"store":           "The caller gives the record store that holds the file index.",
	},
	"archive/kinesisstream": {
		"archive":          "It implements the stream that an archive reads.",
		"internal/process": "The reader waits between two reads of a shard.",
	},

	// Listings of buckets, for audits.
	"audit/inventory": {
		"bucket": "It reads the files of an inventory from a bucket, and yields what a listing would.",
		"event":  "Bucket and key name the objects of an inventory.",
	},
	"action/loadaction": {
		".":     "It implements a handler.",
		"event": "It loads a created object, and drops the rows of a removed one.",
	},

	// The command.
	"cmd/pawl/config": {
		"event": "The configuration names a dialect of events.",
	},
	"cmd/pawl/parts": {
		".":                     "It makes the sources and pipelines of a configuration file.",
		"action/copyaction":     "It makes the action copy.",
		"action/execaction":     "It makes the action exec.",
		"action/httpaction":     "It makes the action http.",
		"action/imageaction":    "It makes the action image.",
		"action/loadaction":     "It makes the action load.",
		"archive":               "It makes the configuration of an archive.",
		"archive/encode":        "It chooses the codec of an archive.",
		"archive/kinesisstream": "It opens the stream of an archive.",
		"bucket":                "It hands the configured store of objects to the parts that need one.",
		"cmd/pawl/config":       "It builds parts from the values that the file has.",
		"ledger":                "The action load completes its task within its own transaction.",
		"source/sqssource":      "It makes the source sqs.",
		"source/webhooksource":  "It makes the source webhook.",
		"store":                 "It returns every ledger as a record store.",
		"store/dynamo":          "It opens the ledger on DynamoDB.",
		"store/memory":          "It opens the ledger in memory.",
		"store/postgres":        "It opens the ledger on PostgreSQL.",
		"store/sqlite":          "It opens the ledger on SQLite.",
	},
	"cmd/pawl/demo": {
		"event":            "The demo names objects in its messages.",
		"files":            "The demo compares the file index with the responses to its clients.",
		"files/filesapi":   "The demo issues tokens to its clients.",
		"internal/fakes3":  "The demo keeps its objects in it.",
		"internal/process": "The demos wait between two steps.",
		"ledger":           "The demo checks that all rows settle.",
		"lock":             "An audit that lost its short lease continues.",
		"proof/rig":        "The demos share relay, processes and a client of files with the end-to-end tests.",
		"source":           "The demo counts the verdicts that the webhook answers.",
		"store/sqlite":     "The demo reads the database of the workers that it runs.",
	},
	"proof/rig": {
		"event": "A notification is about an object.",
	},
	"proof/sim": {
		"audit":           "The simulation runs the decisions of audits.",
		"bucket":          "The simulation's store of objects implements the interface, with faults.",
		"engine":          "The simulation drives engines step by step.",
		"event":           "The simulation sends events about its objects.",
		"internal/simkit": "It is the kernel of simulated worlds: queue of events, threads, choices, trace and shrinking.",
		"ledger":          "The simulation's store of rows implements the interface, with faults.",
		"source":          "The simulation hands deliveries to the engine.",
		"store":           "The simulation's store of rows throttles with the error of stores.",
		"worker":          "The simulation runs the attempts of the real worker.",
	},
	"cmd/pawl/app": {
		".":                   "The command run starts a Pawl, and the command audit starts an audit.",
		"archive":             "The command version prints the format of archives.",
		"files":               "The command version prints the format of the file index.",
		"internal/format":     "The command version prints the format of registers.",
		"lock":                "The command version prints the format of locks.",
		"action/execaction":   "A second signal kills the programs that handlers started.",
		"bucket":              "A failing command explains the errors of a bucket.",
		"bucket/s3bucket":     "Commands open buckets on S3.",
		"cmd/pawl/admin":      "Daemons serve probes and metrics.",
		"cmd/pawl/config":     "Commands read the configuration file.",
		"cmd/pawl/parts":      "Commands build what the configuration file describes.",
		"event":               "Commands take and print the names of objects.",
		"internal/process":    "The report to systemd waits until the process is ready.",
		"ledger":              "Commands list, explain and change rows.",
		"metrics/alerts":      "Daemons send alerts.",
		"source/replaysource": "The command replay reads recorded messages.",
		"store":               "A command opens the record store for one ledger or file index.",
	},
	"metrics": {
		"internal/process": "It waits between two readings of the ledger.",
		"ledger":           "The lease is a register of the ledger.",
		"lock":             "A single process of a ledger reports its state.",
	},
	"metrics/alerts": {
		"audit":           "Losses and withheld removals are in the reports of audits.",
		"internal/format": "It encodes and decodes the stored alerts.",
		"ledger":          "Alerts are about rows, and are stored in registers.",
		"metrics":         "A single process of a ledger sends the alerts of archives.",
	},
	"metrics/prom": {
		".":       "The metrics receive the notices of a Pawl and sample its counts.",
		"archive": "The metrics receive the stored objects of an archive and sample its status.",
		"bucket":  "The requests of an object store are counted.",
		"engine":  "Each kind of notice feeds a metric.",
		"event":   "The age of an event on arrival is a metric.",
		"files":   "The metrics receive the state changes and the audits of files.",
		"ledger":  "The rows that have not settled are counted.",
		"metrics": "A single process of a ledger reads the rows.",
		"source":  "The deliveries of a source are counted on their way to the sink.",
		"store":   "The rows are records of the store.",
	},
	"metrics/otel": {
		".":                    "The tracer is made for a Pawl.",
		"internal/logthrottle": "Warnings about failed exports are logged once in a while.",
		"ledger":               "A span has attributes of a claim.",
		"source":               "A span has attributes of a message.",
	},
	"cmd/pawl/admin": {},
	"cmd/pawl/notificationstats": {
		"event":            "It compares the events of notifications.",
		"internal/extsort": "It sorts the notifications by object and change.",
	},
	"cmd/pawl/dashboard": {
		".":            "It observes the notices of a Pawl for rates.",
		"cmd/pawl/app": "Pages show times and texts as the commands do.",
		"engine":       "Rates count the notices about committed effects.",
		"ledger":       "Pages show rows.",
	},
	"cmd/pawl/pipelinecmd": {
		"cmd/pawl/notificationstats": "The command stats measures captured notifications.",
		".":                          "The command run starts a Pawl, and the command audit starts an audit.",
		"audit":                      "The command audit prints the report and its counts.",
		"audit/inventory":            "An audit can read an inventory instead of listing the bucket.",
		"awslambda":                  "As the bootstrap of a function of AWS Lambda it handles invocations.",
		"bucket":                     "A failing command explains the errors of a bucket.",
		"bucket/s3bucket":            "Commands open buckets on S3.",
		"cmd/pawl/admin":             "Daemons serve probes and metrics.",
		"cmd/pawl/app":               "Commands share streams, exit codes and tables.",
		"cmd/pawl/config":            "Commands read the configuration file.",
		"cmd/pawl/dashboard":         "The command run serves the dashboard.",
		"cmd/pawl/parts":             "Commands build what the configuration file describes.",
		"event":                      "Commands take and print the names of objects.",
		"ledger":                     "Commands list, explain and change rows.",
		"metrics/alerts":             "Daemons send alerts.",
		"metrics/otel":               "Pipelines export traces.",
		"metrics/prom":               "Daemons collect metrics.",
		"source/replaysource":        "The command replay reads recorded messages.",
		"store":                      "A command opens the record store for one ledger or file index.",
	},
	"cmd/pawl/doctorcmd": {
		"bucket":          "A failing command explains the errors of a bucket.",
		"bucket/s3bucket": "Commands open buckets on S3.",
		"cmd/pawl/app":    "Commands share streams, exit codes and tables.",
		"cmd/pawl/config": "Commands read the configuration file.",
		"cmd/pawl/parts":  "Commands build what the configuration file describes.",
		"doctor":          "The command doctor prints the report on a store.",
		"event":           "Commands take and print the names of objects.",
		"lock":            "The lock commands take, show and release locks.",
	},
	"cmd/pawl/supervise": nil,
	"cmd/pawl/lockcmd": {
		"bucket":             "A failing command explains the errors of a bucket.",
		"cmd/pawl/app":       "Commands share streams, exit codes and tables.",
		"cmd/pawl/doctorcmd": "Commands prove that the store honours conditions, once a week.",
		"cmd/pawl/supervise": "The command lock runs its command under a guard, and update its filter in a group.",
		"doctor":             "The command doctor prints the report on a store.",
		"event":              "Commands take and print the names of objects.",
		"lock":               "The lock commands take, show and release locks.",
	},
	"cmd/pawl/archivecmd": {
		"archive":            "The archive commands run, verify and recover archives.",
		"cmd/pawl/admin":     "Daemons serve probes and metrics.",
		"cmd/pawl/app":       "Commands share streams, exit codes and tables.",
		"cmd/pawl/config":    "Commands read the configuration file.",
		"cmd/pawl/dashboard": "The command archive run serves the dashboard.",
		"cmd/pawl/demo":      "The command starts a demo.",
		"cmd/pawl/democmd":   "The command shows a demo as the others do.",
		"cmd/pawl/parts":     "Commands build what the configuration file describes.",
		"event":              "Commands take and print the names of objects.",
		"ledger":             "Commands list, explain and change rows.",
		"metrics/prom":       "Daemons collect metrics.",
		"store":              "A command opens the record store for one ledger or file index.",
	},
	"cmd/pawl/filescmd": {
		"cmd/pawl/admin":   "Daemons serve probes and metrics.",
		"cmd/pawl/app":     "Commands share streams, exit codes and tables.",
		"cmd/pawl/config":  "Commands read the configuration file.",
		"cmd/pawl/demo":    "The command starts a demo.",
		"cmd/pawl/democmd": "The command shows a demo as the others do.",
		"cmd/pawl/parts":   "Commands build what the configuration file describes.",
		"event":            "Commands take and print the names of objects.",
		"files":            "The files commands audit, rebuild and sweep the file index.",
		"files/filesapi":   "The command files run serves the API, and the command files token issues tokens.",
		"files/s3objects":  "The files commands open the bucket of the files.",
		"files/server":     "The command files run starts the server.",
		"internal/process": "The check of the index waits between two reads.",
		"metrics/prom":     "Daemons collect metrics.",
		"store":            "A command opens the record store for one ledger or file index.",
		"store/postgres":   "The files commands open the file index on PostgreSQL.",
		"store/sqlite":     "The files commands open the file index on SQLite.",
	},
	"cmd/pawl/democmd": {
		"cmd/pawl/app":  "Commands share streams, exit codes and tables.",
		"cmd/pawl/demo": "The command starts a demo.",
	},
	"cmd/pawl/simulatecmd": {
		"cmd/pawl/app":    "Commands share streams, exit codes and tables.",
		"internal/simkit": "Its tables have a column for each fault.",
		"proof/sim":       "The command runs and replays simulated worlds.",
	},
	"cmd/pawl/root": {
		"cmd/pawl/app":         "Commands share streams, exit codes and tables.",
		"cmd/pawl/archivecmd":  "It is part of the tree of commands.",
		"cmd/pawl/democmd":     "It is part of the tree of commands.",
		"cmd/pawl/doctorcmd":   "Commands prove that the store honours conditions, once a week.",
		"cmd/pawl/filescmd":    "It is part of the tree of commands.",
		"cmd/pawl/lockcmd":     "It is part of the tree of commands.",
		"cmd/pawl/parts":       "Commands build what the configuration file describes.",
		"cmd/pawl/pipelinecmd": "It is part of the tree of commands.",
		"cmd/pawl/simulatecmd": "It is part of the tree of commands.",
	},
	"cmd/pawl": {
		"cmd/pawl/app":         "The program hands its streams to the commands.",
		"cmd/pawl/pipelinecmd": "In AWS Lambda the program handles invocations.",
		"cmd/pawl/root":        "The program is the tree of commands.",
	},

	// Examples of user code.
	"examples/exec": {},
	"examples/files": {
		"bucket/s3bucket":      "The example keeps its files on S3.",
		"files/server":         "The example serves files in a program of its own.",
		"source":               "The example gives the server its source.",
		"source/webhooksource": "The example gets its notifications by webhook.",
		"store/sqlite":         "The example keeps its file index on SQLite.",
	},
	"examples/lambda": {
		".":               "The example runs a pipeline in a function of its own.",
		"awslambda":       "The example handles invocations.",
		"bucket/s3bucket": "The example reads and writes objects on S3.",
		"store/dynamo":    "The example keeps its ledger on DynamoDB.",
	},
	"examples/library": {
		".":                    "The example runs a pipeline in a program of its own.",
		"bucket/s3bucket":      "The example reads and writes objects on S3.",
		"source/webhooksource": "The example gets its notifications by webhook.",
		"store/sqlite":         "The example keeps its ledger on SQLite.",
	},
	"examples/mutex": {
		"bucket/s3bucket": "The example keeps its lock on S3.",
		"lock":            "The example takes a lock.",
	},
	"examples/once": {
		".":            "The example runs a pipeline for one message.",
		"event":        "The example's own source parses events.",
		"source":       "The example implements a source.",
		"store/sqlite": "The example keeps its ledger on SQLite.",
	},
	"examples/receiver": {
		"action": "The example decodes the facts that the action http sends.",
	},
	"examples/update": {
		"bucket/s3bucket": "The example keeps its object on S3.",
		"lock":            "The example changes a JSON object safely.",
	},

	// For tests.
	"action/internal/actiontest": {
		".":                "It runs a pipeline with the handler under test.",
		"bucket":           "It reads the outputs of the handler.",
		"bucket/membucket": "Inputs and outputs are in memory.",
		"event":            "It makes the events about the test's objects.",
		"ledger":           "It reads the rows that the handler's tasks left.",
		"source":           "It implements a source that delivers the test's events.",
		"store/memory":     "The ledger is in memory.",
	},
	"internal/format/formattest": {
		"internal/format": "It decodes and encodes registers.",
	},
	"archive/archivetest": {
		"archive": "It implements a stream in memory, and tests implementations of streams.",
	},
	"bucket/buckettest": {
		"bucket":                "It tests implementations of the store of objects.",
		"event":                 "Each call names an object.",
		"internal/linearizable": "It checks that concurrent writes to an object are linearizable.",
	},
	"store/storetest": {
		"internal/linearizable": "It checks that concurrent changes to a record are linearizable.",
		"store":                 "It tests implementations of the record store.",
	},
	"source/sourcetest": {
		"source": "It tests implementations of a source.",
	},
	"proof/mutants": {
		"proof/sim": "A mutant names the invariant of the simulation that it breaks.",
	},
	"proof/mutants/runworlds": {
		"proof/sim": "It runs the simulation on the mutated code.",
	},
	"proof/e2e":       {},
	"internal/fakes3": {},
	"files/internal/world": {
		"files":           "It runs the file service in a world with crashes and late writes.",
		"internal/simkit": "It is the kernel of simulated worlds: queue of events, threads, faults, trace and runner.",
		"store":           "Its record store implements the interface, with faults.",
		"store/memory":    "The records of the world are in memory.",
	},
	"internal/linearizable": {},
	"internal/virtualtime":  {},
	"proof/servertest": {
		"archive":             "It puts records into a stream of a test server.",
		"archive/archivetest": "It packs records as the Kinesis Producer Library does.",
		"bucket":              "It names the ways in which a server copies objects on a condition.",
		"internal/fakes3":     "It starts the fake of S3.",
		"internal/toolcache":  "It finds the servers that were built for tests.",
	},
	"internal/simkit": {},
	"internal/simkit/simtest": {
		"internal/simkit": "It runs simulated worlds as tests, with flags that repeat a world.",
	},
	"audit/inventory/inventorytest": {},
	"internal/toolcache":            {},
	"internal/traffic":              {},
	"tools/mutants": {
		"proof/mutants":      "It lists the mutants, and places their patches anew.",
		"internal/toolcache": "It finds the root of the module.",
	},
	"tools/mutation": {
		"internal/toolcache": "It finds the tool that mutates the sources.",
	},
	"tools/site": {
		"internal/toolcache": "It finds Hugo.",
	},
	"tools/test": {
		"proof/mutants":      "It lists the mutants, and runs those of the changed files first.",
		"internal/toolcache": "It builds the tools and servers before the tests run.",
	},
}

// modules lists the packages that use each external module outside of tests. All of them are in the go.sum
// of the library's users.
var modules = map[string][]string{
	"github.com/go-json-experiment/json":            {"action/loadaction", "archive", "archive/encode", "audit", "audit/inventory", "event", "files", "files/filesapi", "internal/format", "ledger", "lock", "metrics/alerts", "source/replaysource"}, // strict: case, duplicate names
	"github.com/cenkalti/backoff/v5":                {"archive/kinesisstream", "files/filesapi", "ledger", "source/sqssource", "store/sqlite"},
	"github.com/tidwall/btree":                      {"store/memory"},
	"github.com/hashicorp/golang-lru/v2":            {"engine", "files/filesapi"},
	"golang.org/x/sync":                             {"audit", "bucket/s3bucket", "cmd/pawl/demo", "cmd/pawl/pipelinecmd", "files", "files/s3objects", "files/server", "source/replaysource", "source/sqssource"},
	"zombiezen.com/go/sqlite":                       {"store/sqlite"},
	"github.com/aws/aws-lambda-go/events":           {"source/lambdasource"},
	"github.com/aws/aws-lambda-go/lambda":           {"cmd/pawl/pipelinecmd", "examples/lambda"},
	"github.com/aws/aws-sdk-go-v2/service/ssm":      {"cmd/pawl/pipelinecmd"},
	"github.com/aws/aws-sdk-go-v2":                  {"archive/kinesisstream", "bucket/s3bucket", "cmd/pawl/demo", "cmd/pawl/pipelinecmd", "files/s3objects", "proof/servertest", "source/sqssource", "store/dynamo"},
	"github.com/aws/aws-sdk-go-v2/config":           {"archive/kinesisstream", "bucket/s3bucket", "cmd/pawl/pipelinecmd", "source/sqssource", "store/dynamo"},
	"github.com/jackc/pgx/v5":                       {"action/loadaction", "cmd/pawl/parts", "proof/servertest", "store/postgres"},
	"github.com/klauspost/compress":                 {"action/loadaction", "archive/encode"},
	"github.com/google/uuid":                        {"action/loadaction", "files"},
	"github.com/aws/aws-sdk-go-v2/credentials":      {"bucket/s3bucket", "proof/servertest"},
	"github.com/aws/aws-sdk-go-v2/service/s3":       {"bucket/s3bucket", "files/s3objects", "proof/servertest"},
	"github.com/aws/smithy-go":                      {"archive/kinesisstream", "bucket/s3bucket", "files/s3objects", "source/sqssource", "store/dynamo"},
	"github.com/parquet-go/parquet-go":              {"action/loadaction", "archive/encode", "audit/inventory", "audit/inventory/inventorytest"},
	"github.com/aws/aws-sdk-go-v2/service/dynamodb": {"proof/servertest", "store/dynamo"},
	"github.com/aws/aws-sdk-go-v2/service/sqs":      {"proof/servertest", "source/sqssource"},
	"github.com/bep/imagemeta":                      {"action/imageaction"},                  // EXIF orientation
	"golang.org/x/image":                            {"action/imageaction"},                  // WebP, resizing
	"github.com/tetratelabs/wazero":                 {"action/imageaction/internal/libwebp"}, // runs libwebp without cgo
	"github.com/aws/aws-sdk-go-v2/service/kinesis":  {"archive/kinesisstream", "proof/servertest"},
	"github.com/graph-gophers/graphql-go":           {"files/filesapi"},
	"github.com/lestrrat-go/jwx/v3":                 {"cmd/pawl/filescmd", "files/filesapi"}, // tokens and key sets
	"github.com/lestrrat-go/httprc/v3":              {"files/filesapi"},                      // key sets at URLs
	"golang.org/x/time":                             {"files/filesapi"},
	"google.golang.org/protobuf":                    {"archive/archivetest", "archive/kinesisstream"}, // aggregates of the Kinesis Producer Library
	"github.com/standard-webhooks/standard-webhooks/libraries": {
		"action/httpaction", "examples/receiver", "metrics/alerts", "source/webhooksource",
	},

	"github.com/spf13/cobra":                                          {"cmd/pawl/app", "cmd/pawl/archivecmd", "cmd/pawl/democmd", "cmd/pawl/doctorcmd", "cmd/pawl/filescmd", "cmd/pawl/lockcmd", "cmd/pawl/pipelinecmd", "cmd/pawl/root", "cmd/pawl/simulatecmd"},
	"github.com/goccy/go-yaml":                                        {"cmd/pawl/config"},
	"github.com/agext/levenshtein":                                    {"cmd/pawl/config"}, // "did you mean"
	"github.com/dustin/go-humanize":                                   {"cmd/pawl/config", "cmd/pawl/filescmd", "cmd/pawl/pipelinecmd"},
	"github.com/jedib0t/go-pretty/v6":                                 {"cmd/pawl/app", "cmd/pawl/demo", "cmd/pawl/doctorcmd", "cmd/pawl/lockcmd", "cmd/pawl/pipelinecmd", "cmd/pawl/simulatecmd"},
	"go.opentelemetry.io/otel":                                        {"metrics/otel"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": {"metrics/otel"},
	"go.opentelemetry.io/otel/sdk":                                    {"metrics/otel"},
	"go.opentelemetry.io/otel/trace":                                  {"metrics/otel"},
	"github.com/prometheus/client_golang/prometheus":                  {"metrics/prom"},
	"github.com/prometheus/client_golang/prometheus/collectors":       {"metrics/prom"},
	"github.com/prometheus/client_golang/prometheus/promhttp":         {"metrics/prom"},
	"github.com/schollz/progressbar/v3":                               {"cmd/pawl/app", "cmd/pawl/archivecmd", "cmd/pawl/demo", "cmd/pawl/doctorcmd", "cmd/pawl/pipelinecmd", "cmd/pawl/simulatecmd"},
	"golang.org/x/term":                                               {"cmd/pawl/app"},
	"golang.org/x/crypto/x509roots/fallback":                          {"cmd/pawl"}, // certificates for the image

	"github.com/bluekeyes/go-gitdiff":   {"proof/mutants", "tools/mutants", "tools/test"}, // patches
	"github.com/johannesboyne/gofakes3": {"cmd/pawl/demo", "internal/fakes3"},             // the demo's object store
	"github.com/anishathalye/porcupine": {"internal/linearizable"},                        // is it linearizable?
	"github.com/google/go-cmp":          {"archive/archivetest", "bucket/buckettest"},
	"pgregory.net/rapid":                {"store/storetest"},
}

var testModules = []string{
	"github.com/cockroachdb/datadriven",
	"github.com/dlclark/regexp2/v2", // patterns with lookarounds
	"github.com/invopop/jsonschema",
	"github.com/pb33f/libopenapi",
	"github.com/pb33f/libopenapi-validator",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"go.opentelemetry.io/proto/otlp", // decodes exported spans
}

func TestImportsRunOneWay(t *testing.T) {
	t.Chdir("../..")
	found := make(map[string]bool)
	for _, p := range modulePackages(t) {
		files := p.nonTestFiles()
		if len(files) == 0 {
			continue
		}
		found[p.dir] = true
		want, known := layers[p.dir]
		if !known {
			t.Errorf("package %s is not in the table of layers: add it and its imports", p.dir)
			continue
		}
		var got []string
		for _, path := range importsOf(files) {
			if dir, ok := inModule(path); ok {
				got = append(got, dir)
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("package %s has imports that differ from the table of layers (-table +source):\n%s", p.dir, diff)
		}
	}
	for dir, imports := range layers {
		if !found[dir] {
			t.Errorf("the table of layers has %s, which is not a package: remove it", dir)
		}
		for imported, use := range imports {
			if !strings.Contains(use, " ") || !strings.HasSuffix(use, ".") {
				t.Errorf("the table of layers has %q for the import of %s by %s: want a sentence about its use", use, imported, dir)
			}
		}
	}
}

func TestOnlyUsersImportDrivers(t *testing.T) {
	t.Chdir("../..")
	users := []string{"awslambda", "cmd/pawl/app", "cmd/pawl/archivecmd", "cmd/pawl/doctorcmd", "cmd/pawl/filescmd", "cmd/pawl/lockcmd", "cmd/pawl/pipelinecmd", "files/internal/world", "cmd/pawl/demo", "cmd/pawl/parts", "files/server", "examples/files", "examples/lambda", "examples/library", "examples/mutex", "examples/once", "examples/update"}
	for dir, imports := range layers {
		for imported := range imports {
			if isDriver(imported) && !slices.Contains(users, dir) && !strings.HasSuffix(dir, "test") {
				t.Errorf("%s imports the driver %s: only the command and users of the library choose drivers", dir, imported)
			}
		}
	}
}

func isDriver(dir string) bool {
	parent := path.Dir(dir)
	return parent == "store" && !strings.HasSuffix(dir, "test") || parent != "." && strings.HasSuffix(path.Base(dir), path.Base(parent))
}

func TestInternalImportsOnlyInternal(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		if !strings.HasPrefix(p.dir, "internal/") {
			continue
		}
		for _, path := range importsOf(p.nonTestFiles()) {
			if dir, ok := inModule(path); ok && !strings.HasPrefix(dir, "internal/") {
				t.Errorf("package %s imports %s: a package in internal/ must not import upwards", p.dir, path)
			}
		}
	}
}

// Package testing would add its flags to programs.
func TestOnlyTestsImportTesting(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		if testOnly(p.dir) {
			continue
		}
		for _, path := range importsOf(p.nonTestFiles()) {
			dir, internal := inModule(path)
			if path == "testing" || strings.HasPrefix(path, "testing/") || internal && testOnly(dir) {
				t.Errorf("package %s imports %s, which is for tests only", p.dir, path)
			}
		}
	}
}

// Each call has the package that may make it.
var reservedCalls = map[string]struct{ dir, instead string }{
	"synctest.Test": {"internal/virtualtime", "it can crash the race detector: use virtualtime.Test"},
	"t.Skip":        {"proof/servertest", "-ci could not forbid it: use servertest.Long"},
	"t.Skipf":       {"proof/servertest", "-ci could not forbid it: use servertest.Long"},
	"t.SkipNow":     {"proof/servertest", "-ci could not forbid it: use servertest.Long"},
}

func TestReservedCalls(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		for _, f := range p.files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					call := fmt.Sprint(sel.X) + "." + sel.Sel.Name
					if r, ok := reservedCalls[call]; ok && r.dir != p.dir {
						t.Errorf("%s: %s: %s", positionOf(sel), call, r.instead)
					}
				}
				return true
			})
		}
	}
}

func TestDirectDependencies(t *testing.T) {
	t.Chdir("../..")
	used, tested := make(map[string][]string), make(map[string]bool)
	for _, p := range modulePackages(t) {
		for _, path := range external(p.nonTestFiles()) {
			if !slices.Contains(used[path], p.dir) {
				used[path] = append(used[path], p.dir)
			}
		}
		for _, path := range external(p.files) {
			tested[path] = true
		}
	}
	if diff := cmp.Diff(modules, used, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("the used modules differ from the table (-table +source):\n%s", diff)
	}
	onlyTested := []string{}
	for path := range tested {
		if used[path] == nil {
			onlyTested = append(onlyTested, path)
		}
	}
	slices.Sort(onlyTested)
	if diff := cmp.Diff(testModules, onlyTested); diff != "" {
		t.Errorf("the modules of tests differ from the list (-list +source):\n%s", diff)
	}
}

// For a module that is in neither table, external returns the import path.
func external(files []*sourceFile) []string {
	found := make(map[string]bool)
	for _, path := range importsOf(files) {
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
			continue // the standard library
		}
		if _, ok := inModule(path); !ok {
			found[moduleOf(path)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func moduleOf(path string) (module string) {
	for _, m := range slices.Concat(slices.Collect(maps.Keys(modules)), testModules) {
		if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(module) {
			module = m
		}
	}
	if module == "" {
		return path
	}
	return module
}

func inModule(path string) (dir string, ok bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}
