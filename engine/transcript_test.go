package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
)

// TestTranscripts runs the files in testdata. To record the current output, run
//
//	go test ./engine -run TestTranscripts -rewrite
//
// Time begins one second after 1970, so that fences are short: the first claim has fence 1000.
// Other times are printed relative to that.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			// The ledger's retries take no time in a bubble.
			virtualtime.Test(t, func(t *testing.T) {
				s := &script{t: t, world: newWorld(t)}
				datadriven.RunTest(t, file, s.run)
			})
		})
	}
}

type script struct {
	t      *testing.T
	d      *datadriven.TestData
	world  *world
	counts bool // a worker emits notices for metrics
	printer
}

var commands = map[string]func(s *script){
	// worker NAME [tasks= bytes= swaps= batch= cache= sweep= outage= attempts= pipelines=(p,q) ack-settled counts]
	"worker": (*script).newWorker,
	// clock +10s: no tick
	"clock": (*script).clock,
	// skew NAME 3s: the lead of the worker's clock
	"skew": (*script).skew,
	// tick NAME [+10s]
	"tick": (*script).tick,
	// deliver NAME ID KEY [seq=HEX | untrusted] [removed] [size= etag= time=+1s name=]; or lines of
	// ID ITEM, ITEM..., all in one step
	"deliver": (*script).deliver,
	// apply NAME: commits and answers every pending swap, one step each
	"apply": (*script).apply,
	// run NAME: repeats apply until no swap is pending
	"run": (*script).runOut,
	// lose NAME: commits every pending swap, and loses the answers
	"lose": (*script).lose,
	// answer NAME: ledger.Ledger resolves every pending swap
	"answer": (*script).answer,
	// hard NAME: the pending swaps are never answered
	"hard": (*script).hard,
	// finish NAME KEY completed|failed|permanent|released [nothing sent unsure after=5s
	// shared=CAUSE:OBJECTS fence=]; or lines of that
	"finish": (*script).finish,
	// swept NAME [failed]
	"swept": (*script).swept,
	// loaded NAME [failed]: with the rows as of the request
	"loaded": (*script).loaded,
	// sources-ended NAME
	"sources-ended": (*script).sourcesEnded,
	"drain":         (*script).drain,
	// redrive KEY [force]
	"redrive": (*script).redrive,
	// reset-order KEY
	"reset-order": (*script).resetOrder,
	// purge KEY
	"purge": (*script).purge,
	// row KEY
	"row": (*script).row,
	// state NAME
	"state": (*script).state,
	// unsettled NAME
	"unsettled": (*script).unsettled,
	// stats NAME
	"stats": (*script).stats,
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	run := commands[d.Cmd]
	if run == nil {
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	s.d, s.printer = d, printer{world: s.world, timed: s.counts}
	run(s)
	if s.Len() == 0 {
		return "(nothing)"
	}
	return s.String()
}

func (s *script) word(i int) string {
	if i < len(s.d.CmdArgs) {
		return s.d.CmdArgs[i].Key
	}
	return ""
}

func (s *script) worker() *worker {
	w := s.world.workers[s.word(0)]
	if w == nil {
		s.d.Fatalf(s.t, "no worker %q", s.word(0))
	}
	return w
}

// lines returns the arguments from i on as one line, or the lines of the input.
func (s *script) lines(i int) []string {
	if len(s.d.CmdArgs) <= i {
		return strings.Split(s.d.Input, "\n")
	}
	words := make([]string, 0, len(s.d.CmdArgs))
	for _, a := range s.d.CmdArgs[i:] {
		words = append(words, a.String())
	}
	return []string{strings.Join(words, " ")}
}

func (s *script) step(w *worker, in ...engine.Input) { s.actions(w.step(in...)) }

func (s *script) newWorker() {
	name := s.word(0)
	cfg := engine.Config{
		Owner: name, Pipelines: []string{"p"}, Policy: policy(),
		Tasks: 4, Bytes: 1 << 20, Swaps: 2, Batch: 100, Cache: 100,
	}
	numbers := map[string]*int{
		"tasks": &cfg.Tasks, "swaps": &cfg.Swaps, "batch": &cfg.Batch, "cache": &cfg.Cache, "attempts": &cfg.Policy.Attempts,
	}
	for _, a := range s.d.CmdArgs[1:] {
		switch {
		case a.Key == "ack-settled":
			cfg.AckSettled = true
		case a.Key == "counts":
			cfg.Counts, s.counts = true, true
		case a.Key == "sweep":
			cfg.SweepInterval = s.duration(a.Vals[0])
		case a.Key == "outage":
			cfg.Outage = s.duration(a.Vals[0])
		case a.Key == "bytes":
			cfg.Bytes = int64(s.number(a.Vals[0]))
		case a.Key == "pipelines":
			cfg.Pipelines = a.Vals
		case numbers[a.Key] != nil:
			*numbers[a.Key] = s.number(a.Vals[0])
		default:
			s.d.Fatalf(s.t, "unknown option %s", a.Key)
		}
	}
	s.world.newWorker(cfg, uint64(len(s.world.workers)))
}

func (s *script) clock() { s.world.now = s.world.now.Add(s.duration(s.word(0))) }

func (s *script) skew() { s.worker().skew = s.duration(s.word(1)) }

func (s *script) tick() {
	if d := s.word(1); d != "" {
		s.world.now = s.world.now.Add(s.duration(d))
	}
	s.step(s.worker(), engine.Tick{})
}

func (s *script) deliver() {
	var in []engine.Input
	for _, line := range s.lines(1) {
		id, items, _ := strings.Cut(line, " ")
		d := engine.Deliver{ID: uint64(s.number(id))}
		for item := range strings.SplitSeq(items, ",") {
			if words := strings.Fields(item); len(words) > 0 {
				d.Items = append(d.Items, s.item(words))
			}
		}
		in = append(in, d)
	}
	s.step(s.worker(), in...)
}

func (s *script) apply() {
	w := s.worker()
	for _, swap := range w.takeSwaps() {
		if swap.landed == nil {
			w.land(swap)
		}
		s.outcomes(swap.Batch, swap.Changes, swap.landed)
		s.step(w, engine.Swapped{Batch: swap.Batch, Outcomes: swap.landed})
	}
}

func (s *script) runOut() {
	for w := s.worker(); len(w.swaps) > 0; {
		s.apply()
	}
}

func (s *script) lose() {
	w := s.worker()
	for _, swap := range w.swaps {
		w.land(swap)
		s.outcomes(swap.Batch, swap.Changes, swap.landed)
	}
}

func (s *script) answer() {
	w := s.worker()
	for _, swap := range w.takeSwaps() {
		out := w.resolve(swap)
		s.outcomes(swap.Batch, swap.Changes, out)
		s.step(w, engine.Swapped{Batch: swap.Batch, Outcomes: out})
	}
}

func (s *script) hard() {
	w := s.worker()
	for _, swap := range w.takeSwaps() {
		s.step(w, engine.Swapped{Batch: swap.Batch, Outcomes: unanswered(len(swap.Changes), errors.New("stopped hard"))})
	}
}

func (s *script) finish() {
	w := s.worker()
	var in []engine.Input
	for _, line := range s.lines(1) {
		if f := s.finished(w, strings.Fields(line)); f.Fence != 0 {
			in = append(in, f)
		} else {
			s.printf("no task of %s runs\n", keyText(f.Key))
		}
	}
	s.step(w, in...)
}

func (s *script) swept() {
	w := s.worker()
	for _, a := range w.takeSweeps() {
		in := engine.Swept{Pipeline: a.Pipeline}
		if s.word(1) != "failed" {
			in.Rows = s.world.due(a)
		}
		s.printf("%s: %d rows\n", a.Pipeline, len(in.Rows))
		s.step(w, in)
	}
}

func (s *script) loaded() {
	w := s.worker()
	for _, in := range w.takeLoads() {
		if s.word(1) == "failed" {
			in = engine.Loaded{}
		}
		s.printf("%d rows\n", len(in.Rows))
		s.step(w, in)
	}
}

func (s *script) sourcesEnded() { s.step(s.worker(), engine.SourcesEnded{}) }

func (s *script) drain() { s.step(s.worker(), engine.Drain{}) }

func (s *script) redrive() {
	key := parseKey(s.word(0))
	row := s.world.load(key)
	s.world.write(row.Redrive(s.word(1) == "force", s.world.now), row.Nonce)
}

func (s *script) resetOrder() {
	row := s.world.load(parseKey(s.word(0)))
	s.world.write(row.ResetOrder(s.world.now), row.Nonce)
}

func (s *script) purge() {
	key := parseKey(s.word(0))
	s.world.swap([]ledger.Change{{Key: key, Expect: s.world.load(key).Nonce}})
}

func (s *script) row() {
	row := s.world.load(parseKey(s.word(0)))
	s.printf("%s\n", s.rowText(&row))
	if row.LastError != "" {
		s.printf("  last error: %s\n", row.LastError)
	}
}

func (s *script) state() {
	w := s.worker()
	next := "never"
	if n := w.Next(); !n.IsZero() {
		next = s.time(n)
	}
	s.printf("pending=%d idle=%t next=%s\n", w.Pending(), w.Idle(), next)
}

func (s *script) unsettled() {
	w := s.worker()
	s.printf("unsettled=%d all-settled=%t\n", w.Unsettled(), w.AllSettled())
}

func (s *script) stats() {
	fields := strings.Fields(strings.Trim(fmt.Sprintf("%+v", s.worker().Stats), "{}"))
	for _, f := range fields {
		if !strings.HasSuffix(f, ":0") {
			s.printf("%s\n", strings.Replace(f, ":", " ", 1))
		}
	}
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return d
}
