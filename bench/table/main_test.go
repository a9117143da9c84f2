package main

import (
	"io"
	"strings"
	"testing"
)

const output = `goos: linux
pkg: github.com/pawlhq/pawl/bench
BenchmarkPeers-2   	       2	        11.54 pawl/restate	         3.5 pawl/river	     17500 pawl/s
BenchmarkPeers-2   	       2	        11.54 pawl/restate	         2.5 pawl/river	     12500 pawl/s
BenchmarkPeers-2   	       2	        11.54 pawl/restate	         2.9 pawl/river	     14500 pawl/s
PASS
pkg: github.com/pawlhq/pawl/proof/e2e
BenchmarkCycle   	       5	         0.65 ratio
`

func TestTable(t *testing.T) {
	got, failed, err := read(strings.NewReader(output), io.Discard)
	if err != nil || failed {
		t.Fatal(failed, err)
	}
	var table strings.Builder
	if err := write(&table, got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"bench BenchmarkPeers pawl/river 2.90 at least 3 MISSED pawl 14500/s",
		"bench BenchmarkPeers pawl/restate 11.54 ok",
		"proof/e2e BenchmarkCycle ratio 0.65 at least 0.6 ok",
		"bench BenchmarkSQS store/bento at least 4 not run",
	} {
		if !strings.Contains(strings.Join(strings.Fields(table.String()), " "), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
	if _, failed, _ := read(strings.NewReader("FAIL\tgithub.com/pawlhq/pawl/bench [build failed]\n"), io.Discard); !failed {
		t.Error("a failed build is not reported")
	}
}
