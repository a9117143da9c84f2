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

// What TestKills is to do. Its plan is made from the seed and these.
var (
	rounds    = flag.Int("rounds", 1, "rounds on each server")
	kills     = flag.Int("kills", 20, "SIGKILLs in a round")
	stops     = flag.Int("stops", 5, "SIGSTOPs in a round")
	firstSeed = flag.Uint64("seed", 0, "seed of the first round; 0: a fresh one")
)

const (
	workers = 3
	objects = 200
)

// The pipelines. One has an output, the other tells a service.
const (
	pipelineUpper = "upper"
	pipelineTell  = "tell"
)

var pipelines = []string{pipelineUpper, pipelineTell}

// The lease is short, so that a stopped worker sleeps through it. The horizon is
// longer than the longest stop and the slowest write together, for that is how
// late a write may land.
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
lease: {ttl: %s, skew: %s, horizon: %s}
retry: {attempts: 100, base: 50ms, max: 1s}
concurrency: 16
sweep_interval: 200ms
`

// TestKills runs several worker processes over one ledger and one object store
// while objects change. It kills them at random (SIGKILL) and stops them for
// longer than their leases last (SIGSTOP, later SIGCONT). A relay before them
// drops, doubles, delays and reorders what the store tells, and the network
// between them and the store holds back some writes and loses some answers.
//
// What is watched meanwhile stands at [life], [judge] and [fenced]. At rest
// nothing that was acknowledged is forgotten, an audit finds what the relay has
// dropped and nothing else, and every output is that of its input.
//
// The seed repeats the changes, the faults and the fate of notifications. The
// timing it does not. With -short there are at most five kills.
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
		t.Logf("in all:\n%s", total)
	}
}

// runRounds plays rounds and checks them.
func runRounds(t *testing.T, total *counts, begin func(t *testing.T, seed uint64) *round) {
	t.Helper()
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	test := t.Name()
	for i := range *rounds {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("repeat with: go test ./proof/e2e -run %s -kills %d -stops %d -seed %d", test, *kills, *stops, seed)
			r := begin(t, seed)
			r.run(t)
			r.check(t)
			c := r.countRound(t)
			total.merge(c)
			t.Logf("\n%s", c)
		})
	}
}
