package pawl_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers says which of the module's packages each package imports, tests aside.
// "." is the root, package pawl. Imports run one way, from the bottom of this
// table to its top; ARCHITECTURE.md says why.
//
// The table is exact. A new line in it is a decision: make it in review.
var layers = map[string][]string{
	// How a warning is logged that comes again and again.
	"internal/logthrottle": {},

	// What a conditional write and an event are, and a row, a bucket and a source.
	"cell":   {},
	"event":  {},
	"store":  {},
	"ledger": {"cell", "event", "store"},
	"bucket": {"cell", "event"},
	"source": {"event"},

	// Deciding, and doing.
	"engine":  {"event", "ledger"},
	"archive": {"bucket", "cell", "doctor", "event", "ledger", "lock"}, // doctor: it proves the store before the first record
	"doctor":  {"bucket", "cell", "event"},
	"files":   {"source", "store"},
	"lock":    {"bucket", "cell", "doctor", "event", "ledger"}, // doctor: it proves the store before the first lease
	"worker":  {"bucket", "engine", "event", "internal/logthrottle", "ledger", "source"},
	"audit":   {"bucket", "cell", "engine", "event", "ledger", "lock", "worker"},
	".":       {"audit", "bucket", "engine", "event", "ledger", "source", "store", "worker"},

	// Drivers. They know their own interface and nothing of each other.
	"store/memory":          {"store"},
	"store/postgres":        {"store"},
	"store/sqlite":          {"store"},
	"bucket/membucket":      {"bucket", "event"},
	"bucket/s3bucket":       {"bucket", "event"},
	"source/replaysource":   {"event", "source"},
	"source/sqssource":      {"event", "internal/logthrottle", "source"},
	"source/webhooksource":  {"event", "internal/logthrottle", "source"},
	"action":                {".", "event"},
	"action/copyaction":     {"."},
	"action/execaction":     {".", "action", "event"},
	"action/httpaction":     {".", "action"},
	"action/imageaction":    {"."},
	"archive/encode":        {"archive"},
	"files/filesapi":        {"files"},
	"files/s3objects":       {"files"},
	"files/server":          {"bucket", "bucket/s3bucket", "event", "files", "files/filesapi", "files/s3objects", "source", "store"},
	"archive/kinesisstream": {"archive"},
	// What there is in a bucket, for an audit.
	"audit/inventory":   {"bucket", "event"},
	"action/loadaction": {".", "event"},

	// The command.
	"internal/config": {"event"},
	"internal/parts": {
		".", "action/copyaction", "action/execaction", "action/httpaction", "action/imageaction", "action/loadaction",
		"archive", "archive/encode", "archive/kinesisstream", "bucket", "event", "internal/config", "ledger",
		"source/sqssource", "source/webhooksource", "store", "store/memory", "store/postgres", "store/sqlite",
	},
	"internal/demo": {"event", "files", "files/filesapi", "internal/fakes3", "ledger", "source", "store/sqlite"},
	"internal/sim":  {"audit", "bucket", "engine", "event", "internal/tape", "ledger", "source", "worker"},
	"internal/cli": {
		".", "action/execaction", "archive", "audit", "audit/inventory", "bucket", "bucket/s3bucket", "doctor", "event", "files", "files/filesapi", "files/s3objects", "files/server", "internal/config", "internal/demo", "internal/parts",
		"internal/sim", "ledger", "lock", "source/replaysource", "store", "store/postgres", "store/sqlite",
	},
	"cmd/pawl": {"internal/cli"},

	// What users write.
	"examples/exec":     {},
	"examples/files":    {"bucket/s3bucket", "files/server", "source", "source/webhooksource", "store/sqlite"},
	"examples/library":  {".", "bucket/s3bucket", "source/webhooksource", "store/sqlite"},
	"examples/mutex":    {"bucket/s3bucket", "lock"},
	"examples/once":     {".", "event", "source", "store/sqlite"},
	"examples/receiver": {"action"},
	"examples/update":   {"bucket/s3bucket", "lock"},

	// For tests.
	"action/internal/actiontest":    {".", "bucket", "bucket/membucket", "event", "ledger", "source", "store/memory"},
	"archive/archivetest":           {"archive"},
	"bucket/buckettest":             {"bucket", "event", "internal/registertest"},
	"store/storetest":               {"internal/registertest", "store"},
	"source/sourcetest":             {"source"},
	"internal/sim/mutants":          {"internal/sim"},
	"internal/sim/mutants/play":     {"internal/sim"},
	"internal/e2e":                  {},
	"internal/fakes3":               {},
	"internal/filesim":              {"files", "internal/tape", "store", "store/memory"},
	"internal/registertest":         {},
	"internal/servertest":           {"archive", "archive/archivetest", "internal/fakes3", "internal/toolcache"},
	"internal/tape":                 {},
	"audit/inventory/inventorytest": {},
	"internal/toolcache":            {},
	"internal/traffic":              {},
	"tools/mutants":                 {"internal/sim/mutants", "internal/toolcache"},
	"tools/mutation":                {"internal/toolcache"},
	"tools/test":                    {"internal/sim/mutants", "internal/toolcache"},
}

// modules says which packages use which modules of others, tests aside. Every
// module here ends up in the go.sum of whoever uses Pawl as a library.
var modules = map[string][]string{
	"github.com/go-json-experiment/json":           {"action/loadaction", "archive", "archive/encode", "audit/inventory", "event", "files", "files/filesapi", "ledger", "lock", "source/replaysource"}, // strict: case, duplicate names
	"github.com/cenkalti/backoff/v5":               {"archive/kinesisstream", "files/filesapi", "internal/demo", "ledger", "source/sqssource", "store/sqlite"},
	"github.com/tidwall/btree":                     {"store/memory"},
	"github.com/hashicorp/golang-lru/v2":           {"engine", "files/filesapi"},
	"golang.org/x/sync":                            {"audit", "files", "files/s3objects", "files/server", "internal/cli", "internal/demo", "source/replaysource", "source/sqssource"},
	"zombiezen.com/go/sqlite":                      {"store/sqlite"},
	"github.com/aws/aws-sdk-go-v2":                 {"archive/kinesisstream", "bucket/s3bucket", "files/s3objects", "internal/demo", "internal/servertest", "source/sqssource"},
	"github.com/aws/aws-sdk-go-v2/config":          {"archive/kinesisstream", "bucket/s3bucket", "source/sqssource"},
	"github.com/jackc/pgx/v5":                      {"action/loadaction", "internal/parts", "internal/servertest", "store/postgres"},
	"github.com/klauspost/compress":                {"action/loadaction", "archive/encode"},
	"github.com/google/uuid":                       {"action/loadaction", "files"},
	"github.com/aws/aws-sdk-go-v2/credentials":     {"bucket/s3bucket", "internal/servertest"},
	"github.com/aws/aws-sdk-go-v2/service/s3":      {"bucket/s3bucket", "files/s3objects", "internal/servertest"},
	"github.com/aws/smithy-go":                     {"archive/kinesisstream", "bucket/s3bucket", "files/s3objects", "source/sqssource"},
	"github.com/parquet-go/parquet-go":             {"action/loadaction", "archive/encode", "audit/inventory", "audit/inventory/inventorytest"},
	"github.com/aws/aws-sdk-go-v2/service/sqs":     {"internal/servertest", "source/sqssource"},
	"github.com/bep/imagemeta":                     {"action/imageaction"}, // EXIF orientation
	"golang.org/x/image":                           {"action/imageaction"}, // WebP, resizing
	"github.com/aws/aws-sdk-go-v2/service/kinesis": {"archive/kinesisstream", "internal/servertest"},
	"github.com/graph-gophers/graphql-go":          {"files/filesapi"},
	"github.com/lestrrat-go/jwx/v3":                {"files/filesapi", "internal/cli"}, // tokens and key sets
	"github.com/lestrrat-go/httprc/v3":             {"files/filesapi"},                 // key sets at URLs
	"golang.org/x/time":                            {"files/filesapi"},
	"google.golang.org/protobuf":                   {"archive/archivetest", "archive/kinesisstream"}, // aggregates of the Kinesis Producer Library
	"github.com/standard-webhooks/standard-webhooks/libraries": {
		"action/httpaction", "examples/receiver", "source/webhooksource",
	},

	"github.com/spf13/cobra":            {"internal/cli"},
	"github.com/goccy/go-yaml":          {"internal/config"},
	"github.com/agext/levenshtein":      {"internal/config"}, // "did you mean"
	"github.com/dustin/go-humanize":     {"internal/cli", "internal/config"},
	"github.com/jedib0t/go-pretty/v6":   {"internal/cli", "internal/demo"},
	"github.com/schollz/progressbar/v3": {"internal/cli", "internal/demo"},
	"golang.org/x/term":                 {"internal/cli"},

	"github.com/bluekeyes/go-gitdiff":   {"internal/sim/mutants", "tools/mutants", "tools/test"}, // patches
	"github.com/johannesboyne/gofakes3": {"internal/demo", "internal/fakes3"},                    // the demo's object store
	"github.com/anishathalye/porcupine": {"internal/registertest"},                               // is it linearizable?
	"github.com/google/go-cmp":          {"archive/archivetest", "bucket/buckettest"},
	"pgregory.net/rapid":                {"store/storetest"},
}

// testModules are used by _test.go files and by nothing else.
var testModules = []string{
	"github.com/cockroachdb/datadriven",
	"github.com/invopop/jsonschema",
	"github.com/pb33f/libopenapi",
	"github.com/pb33f/libopenapi-validator",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6",
}

func TestImportsRunOneWay(t *testing.T) {
	found := make(map[string]bool)
	for _, p := range modulePackages(t) {
		files := p.ships()
		if len(files) == 0 {
			continue
		}
		found[p.dir] = true
		want, known := layers[p.dir]
		if !known {
			t.Errorf("package %s is not in the table of layers: add it, with what it may import", p.dir)
			continue
		}
		got := []string{}
		for _, path := range importsOf(files) {
			if dir, ok := inModule(path); ok {
				got = append(got, dir)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("package %s imports other packages than the table of layers says (-table +source):\n%s", p.dir, diff)
		}
	}
	for dir := range layers {
		if !found[dir] {
			t.Errorf("the table of layers has %s, which is no package: remove it", dir)
		}
	}
}

// TestDriversStandAlone holds what the table of layers itself must obey.
func TestDriversStandAlone(t *testing.T) {
	users := []string{"internal/cli", "internal/filesim", "internal/demo", "internal/parts", "files/server", "examples/files", "examples/library", "examples/mutex", "examples/once", "examples/update"}
	for dir, imports := range layers {
		for _, imported := range imports {
			if isDriver(imported) && !slices.Contains(users, dir) && !strings.HasSuffix(dir, "test") {
				t.Errorf("%s imports the driver %s: only the command and users of the library choose drivers", dir, imported)
			}
		}
	}
}

// isDriver reports that a package is one of several behind an interface, as its
// place or its name says: store/sqlite, bucket/s3bucket.
func isDriver(dir string) bool {
	parent := path.Dir(dir)
	return parent == "store" && !strings.HasSuffix(dir, "test") || parent != "." && strings.HasSuffix(path.Base(dir), path.Base(parent))
}

// TestOnlyTestsTest keeps package testing, and its flags, out of the programs.
func TestOnlyTestsTest(t *testing.T) {
	for _, p := range modulePackages(t) {
		if p.forTests() {
			continue
		}
		for _, path := range importsOf(p.ships()) {
			dir, internal := inModule(path)
			if path == "testing" || strings.HasPrefix(path, "testing/") || internal && strings.HasSuffix(dir, "test") {
				t.Errorf("package %s imports %s, which is for tests alone", p.dir, path)
			}
		}
	}
}

func TestDirectDependencies(t *testing.T) {
	used, tested := make(map[string][]string), make(map[string]bool)
	for _, p := range modulePackages(t) {
		for _, path := range external(p.ships()) {
			if !slices.Contains(used[path], p.dir) {
				used[path] = append(used[path], p.dir)
			}
		}
		for _, path := range external(p.files) {
			tested[path] = true
		}
	}
	if diff := cmp.Diff(modules, used); diff != "" {
		t.Errorf("other modules are used than the table says, or by other packages (-table +source):\n%s", diff)
	}
	onlyTested := []string{}
	for path := range tested {
		if used[path] == nil {
			onlyTested = append(onlyTested, path)
		}
	}
	slices.Sort(onlyTested)
	if diff := cmp.Diff(testModules, onlyTested); diff != "" {
		t.Errorf("tests use other modules than the list says (-list +source):\n%s", diff)
	}
}

// external returns the known modules that files import, sorted. A module that
// is in neither table is reported by its import path.
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

// moduleOf returns the longest known module that holds a package.
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

// inModule returns the folder of a package of this module.
func inModule(path string) (dir string, ok bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}
