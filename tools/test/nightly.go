package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type nightly struct {
	*scope
	scale float64 // of the budgets; 1 is the full run
	seed  uint64
}

func (n *nightly) goStep(name, budget string, args ...string) step {
	return step{name, budget, func(ctx context.Context) error {
		fmt.Println("$ go " + shell(args))
		return command(ctx, n.root, "go", args...)
	}}
}

func (n *nightly) simulations(ctx context.Context) (all []step) {
	add := func(name, budget string, args ...string) { all = append(all, n.goStep(name, budget, args...)) }
	seed := strconv.FormatUint(n.seed, 10)
	worlds, lockWorlds := n.count(1, 10_000_000), n.count(1, 1_000_000)
	add("worlds", worlds+" worlds", "run", "./cmd/pawl", "simulate", "--histories", worlds, "--seed", seed)
	add("lock worlds", lockWorlds+" worlds", "test", "./lock", "-run", "^TestWorlds$", "-count=1", "-timeout", "6h", "-v", "-histories", lockWorlds, "-seed", seed)
	add("archive worlds", lockWorlds+" worlds", "test", "./archive", "-run", "^TestWorlds$", "-count=1", "-timeout", "12h", "-v", "-histories", lockWorlds, "-seed", seed)
	add("files worlds", lockWorlds+" worlds", "test", "./files/internal/world", "-run", "^TestWorlds$", "-count=1", "-timeout", "12h", "-v", "-histories", lockWorlds, "-seed", seed)
	scopes, explore := "small scopes", []string{"test", "./proof/sim", "-run", "^TestExplore$", "-count=1", "-timeout", "12h", "-v"}
	if n.scale >= 1 {
		scopes, explore = "all scopes", append(explore, "-whole")
	}
	add("model checker", scopes, explore...)

	mutants, budget := n.mutantArgs(ctx)
	add("mutants", budget, mutants...)
	return all
}

func (n *nightly) steps(ctx context.Context) []step {
	all := n.simulations(ctx)
	add := func(name, budget string, args ...string) { all = append(all, n.goStep(name, budget, args...)) }
	rounds, kills, stops := n.count(1, 10), n.count(20, 50), n.count(5, 10) // smaller numbers would detect too little
	add("kills", rounds+" × "+kills+" kills, "+stops+" stops", "test", "./proof/e2e", "-run", "^TestKills$", "-count=1", "-timeout", "6h", "-v",
		"-rounds", rounds, "-kills", kills, "-stops", stops)
	rounds = n.count(1, 3)
	add("kills with queues", rounds+" × "+kills+" kills, "+stops+" stops", "test", "./proof/e2e", "-run", "^TestQueueKills$", "-count=1", "-timeout", "6h", "-v",
		"-rounds", rounds, "-kills", kills, "-stops", stops)
	add("rolling upgrade", kills+" kills, "+stops+" stops", "test", "./proof/e2e", "-run", "^TestRollingUpgrade$", "-count=1", "-timeout", "1h", "-v",
		"-kills", kills, "-stops", stops)
	increments := n.count(1, 2000)
	add("counter", increments+" updates", "test", "./proof/e2e", "-run", "^TestCounter$", "-count=1", "-timeout", "1h", "-v", "-increments", increments)

	files, killed, crashes := n.count(200, 500), n.count(20, 200), n.count(4, 50)
	add("loads", files+" files, "+killed+" kills, "+crashes+" crashes", "test", "./proof/e2e", "-run", "^TestLoads$", "-count=1", "-timeout", "1h", "-v",
		"-files", files, "-loadkills", killed, "-crashes", crashes)
	uploads, uploadKills, uploadStops := n.count(72, 3000), n.count(8, 200), n.count(2, 20)
	add("files", uploads+" uploads, "+uploadKills+" kills, "+uploadStops+" stops", "test", "./proof/e2e", "-run", "^TestFiles$", "-count=1", "-timeout", "2h", "-v",
		"-uploads", uploads, "-uploadkills", uploadKills, "-uploadstops", uploadStops)
	begins, beginKills := n.count(2000, 100_000), n.count(10, 200)
	add("begun files", begins+" uploads, "+beginKills+" kills", "test", "./proof/e2e", "-run", "^TestFilesBegins$", "-count=1", "-timeout", "2h", "-v",
		"-begins", begins, "-beginkills", beginKills)
	examples := n.count(10, 2000)
	add("requests to the files API", examples+" for each operation", "test", "./files/filesapi", "-run", "^TestSchemathesis$", "-count=1", "-timeout", "2h", "-v", "-examples", examples)
	records, archiveKills, archiveStops := n.count(20_000, 200_000), n.count(5, 50), n.count(1, 10)
	add("archive", records+" records, "+archiveKills+" kills, "+archiveStops+" stops", "test", "./proof/e2e", "-run", "^TestArchive$", "-count=1", "-timeout", "2h", "-v",
		"-archiverecords", records, "-archivekills", archiveKills, "-archivestops", archiveStops)
	objects, strikes := n.count(300, 3000), n.count(5, 50)
	add("many workers", objects+" objects, "+strikes+" kills of two", "test", "./proof/e2e", "-run", "^TestManyWorkers$", "-count=1", "-timeout", "2h", "-v",
		"-objects", objects, "-strikes", strikes)
	share := strconv.Itoa(max(1, 50-int(n.scale*49)))
	add("published traffic", "one part in "+share, "test", "./proof/e2e", "-run", "^TestTraffic$", "-count=1", "-timeout", "6h", "-v", "-share", share)
	measured := n.count(100_000, 10_000_000)
	add("statistics", measured+" notifications", "test", "./proof/e2e", "-run", "^TestStats$", "-count=1", "-timeout", "2h", "-v", "-statsnotifications", measured)
	due := n.count(10_000, 100_000)
	add("sweepers", due+" rows", "test", "./proof/e2e", "-run", "^TestSweepers$", "-count=1", "-timeout", "1h", "-v", "-due", due)

	divisor := strconv.Itoa(max(1, min(240, int(1/n.scale))))
	add("alerts", "durations divided by "+divisor, "test", "./proof/e2e", "-run", "^TestAlerts$", "-count=1", "-timeout", "2h", "-parallel", "20", "-v", "-alertscale", divisor)

	pageRows := n.count(10_000, 1_000_000)
	add("pages of the dashboard", pageRows+" rows", "-C", browserDir, "test", ".", "-run", "^$", "-bench", "^BenchmarkPages$", "-benchtime", "5x", "-timeout", "1h",
		"-pagerows", pageRows)
	hostile := n.count(100, 10_000)
	add("flood", hostile+" connections", "test", "./source/webhooksource", "-run", "^TestFlood$", "-count=1", "-timeout", "1h", "-v", "-flood", hostile)

	each := max(time.Second, time.Duration(n.scale*float64(time.Minute)).Round(time.Second))
	for _, t := range n.targets {
		all = append(all, step{t.String(), each.String(), func(ctx context.Context) error {
			fmt.Println("$ go " + shell(t.args(each)))
			return t.fuzz(ctx, n.root, each)
		}})
	}
	return all
}

func (n *nightly) count(least, whole int) string {
	return strconv.Itoa(max(least, int(n.scale*float64(whole))))
}

func (n *nightly) mutantArgs(ctx context.Context) (args []string, budget string) {
	args = []string{"test", "./" + mutantsDir, "-count=1", "-timeout", "6h"}
	if n.scale >= 1 {
		return append(args, "-whole"), "all"
	}
	all := ranked(mutantCandidates(n.known, findChanges(ctx, n.root)))
	few := max(1, int(n.scale*float64(len(all))))
	return append(args, "-only", strings.Join(names(all[:few]), ",")), fmt.Sprintf("%d of %d", few, len(all))
}

func shell(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, "^$ ()|*'") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
