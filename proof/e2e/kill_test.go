//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
)

// The parameters and the seed determine the plan.
var (
	rounds    = flag.Int("rounds", 1, "rounds on each server")
	kills     = flag.Int("kills", 20, "SIGKILLs per round")
	stops     = flag.Int("stops", 5, "SIGSTOPs per round")
	firstSeed = flag.Uint64("seed", 0, "seed of the first round; 0 means random")
)

const (
	workers = 3
	objects = 200
)

const (
	pipelineUpper = "upper"
	pipelineTell  = "tell"
)

var pipelines = []string{pipelineUpper, pipelineTell}

// A frozen worker sleeps past the lease. A write may land as late as the longest freeze plus the slowest
// write; the horizon is longer than that.
const (
	ttl, skew = time.Second, 300 * time.Millisecond
	leaseTime = ttl + skew
	horizon   = 7 * time.Second
)

const killConfig = `
ledger: %q
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: %q}
%spipelines:
  - name: upper
    match: {bucket: inputs}
    exec: {command: [sh, -c, 'sleep 0.$((PAWL_FENCE %% 2))$((PAWL_FENCE %% 7)); exec tr a-z A-Z'], to: s3://outputs/up/}
  - name: tell
    match: {bucket: inputs}
    http: {url: %q, timeout: 5s}
lease: {ttl: %s, skew: %s, late_write_window: %s}
retry: {attempts: 100, base: 50ms, max: 1s}
concurrency: 16
sweep_interval: 200ms
`

// TestKills runs several worker processes over one ledger and one store while objects change. It kills and
// freezes them; a relay and a proxy make notifications and store requests fail.
//
// [rowHistory], [effectViolations] and [outputViolations] check every write. At rest, every acknowledged
// event is in the ledger, an audit finds exactly the dropped notifications, and every output matches its
// input.
//
// The seed repeats the changes and faults, but not the timing. With -short there are at most five kills.
func TestKills(t *testing.T) {
	if testing.Short() {
		*kills = min(*kills, 5)
	}
	t.Parallel()
	binary := build(t)
	total := &counts{}
	for _, server := range []struct {
		name  string
		start func(testing.TB, servertest.Options) *servertest.Server
	}{{"minio", servertest.MinIO}, {"versitygw", servertest.VersityGW}} {
		t.Run(server.name, func(t *testing.T) {
			runRounds(t, total, func(t *testing.T, seed uint64) *round { return newRound(t, server.start, binary, seed, nil) })
		})
	}
	if *rounds > 1 {
		t.Logf("total:\n%s", total)
	}
}

// maxExtraRounds is the number of further rounds if chance did not cause every kind of fault.
const maxExtraRounds = 2

func runRounds(t *testing.T, total *counts, begin func(t *testing.T, seed uint64) *round) {
	t.Helper()
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	test, all, missing := t.Name(), &counts{}, []string(nil)
	for i := 0; i < *rounds || i < *rounds+maxExtraRounds && len(missing) > 0 && !t.Failed(); i++ {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("repeat with: go test ./proof/e2e -run %s -kills %d -stops %d -seed %d", test, *kills, *stops, seed)
			r := begin(t, seed)
			r.run(t)
			r.check(t)
			c := r.countRound(t)
			total.merge(c)
			all.merge(c)
			if !testing.Short() { // five kills may not cause everything
				missing = all.missing(r.queues != nil)
			}
			t.Logf("\n%s", c)
		})
	}
	if len(missing) > 0 {
		t.Errorf("never happened: %q: the test shows too little", missing)
	}
}
