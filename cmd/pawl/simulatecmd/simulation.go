package simulatecmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/proof/sim"
)

type simulation struct {
	*sim.Report
	Seconds  float64                      `json:"seconds"`
	Faults   map[string]map[string]uint64 `json:"faults"` // by step and fault
	Held     bool                         `json:"held"`   // every invariant
	Complete bool                         `json:"complete"`
}

func printSimulation(a *app.App, r *sim.Report, wanted uint64) error {
	s := &simulation{
		Report: r, Seconds: r.Elapsed.Round(time.Millisecond).Seconds(), Faults: faults(r),
		Held: r.Failure == nil, Complete: r.Histories >= wanted,
	}
	var err error
	if a.JSON {
		err = a.PrintJSON(s)
	} else {
		_, err = fmt.Fprint(a.Out, s.text())
	}
	switch {
	case err != nil:
		return err
	case !s.Held:
		return app.Found()
	case !s.Complete:
		return app.Failed(fmt.Errorf("the simulation was interrupted after %d of %d worlds", r.Histories, wanted),
			fmt.Sprintf("continue with --seed %d", r.First+r.Histories))
	}
	return nil
}

func faults(r *sim.Report) map[string]map[string]uint64 {
	met := make(map[string]map[string]uint64)
	for i := range r.Injected {
		step := sim.Step(i)
		of := make(map[string]uint64)
		for j, n := range r.Injected[i] {
			if fault := sim.Fault(j); step.Has(fault) {
				of[fault.String()] = n
			}
		}
		met[step.String()] = of
	}
	return met
}

func (s *simulation) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seeds %d to %d: %s, %d steps each, in %.1f s, %.0f per second\n\n",
		s.First, s.First+max(s.Histories, 1)-1, worlds(s.Histories), s.Steps/max(s.Histories, 1), s.Seconds,
		float64(s.Histories)/max(s.Elapsed.Seconds(), 1e-9))
	fmt.Fprintf(&b, "%s\n\n", s.table())
	fmt.Fprintf(&b, "setbacks (older results that replaced newer ones until a verification repaired them): %d\n\n", s.Setbacks)
	switch {
	case s.Held && s.Complete:
		fmt.Fprintf(&b, "Every invariant held in every world.\n")
		return b.String()
	case s.Held:
		fmt.Fprintf(&b, "Every invariant held in the finished worlds.\n")
		return b.String()
	}
	f := s.Failure
	fmt.Fprintf(&b, "World of seed %d\n", f.Seed)
	writeViolations(&b, f.Violations)
	fmt.Fprintf(&b, "\nThe full world:         pawl simulate --story --seed %d\n", f.Seed)
	fmt.Fprintf(&b, "Shrunk to %3d choices:  pawl simulate --tape %s\n\n", f.Choices, f.Tape)
	fmt.Fprintf(&b, "Shrunk world\n\n%s\n", strings.Join(f.Trace, "\n"))
	return b.String()
}

func worlds(n uint64) string {
	if n == 1 {
		return "1 world"
	}
	return fmt.Sprintf("%d worlds", n)
}

func (s *simulation) table() string {
	t := table.NewWriter()
	t.SetStyle(app.PlainTable)
	t.SuppressTrailingSpaces()
	header := table.Row{"FAULT"}
	configs := []table.ColumnConfig{}
	for i := range s.Injected {
		header = append(header, strings.ToUpper(sim.Step(i).String()))
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for j := range s.Injected[0] {
		fault := sim.Fault(j)
		if fault == simkit.NoFault {
			continue
		}
		row := table.Row{fault.String()}
		for i := range s.Injected {
			if sim.Step(i).Has(fault) {
				row = append(row, s.Injected[i][j])
			} else {
				row = append(row, "-")
			}
		}
		t.AppendRow(row)
	}
	return t.Render()
}

type worldReport struct {
	Seed       *uint64         `json:"seed,omitempty"` // nil for a tape
	Violations []sim.Violation `json:"violations"`
	Trace      []string        `json:"story"`
}

func printWorld(a *app.App, w *worldReport) error {
	if w.Violations == nil {
		w.Violations = []sim.Violation{}
	}
	var err error
	if a.JSON {
		err = a.PrintJSON(w)
	} else {
		_, err = fmt.Fprint(a.Out, w.text())
	}
	if err == nil && len(w.Violations) > 0 {
		return app.Found()
	}
	return err
}

func (w *worldReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", strings.Join(w.Trace, "\n"))
	name := "the tape"
	if w.Seed != nil {
		name = fmt.Sprintf("seed %d", *w.Seed)
	}
	if len(w.Violations) == 0 {
		fmt.Fprintf(&b, "Every invariant held in the world of %s.\n", name)
		return b.String()
	}
	fmt.Fprintf(&b, "World of %s\n", name)
	writeViolations(&b, w.Violations)
	return b.String()
}

func writeViolations(b *strings.Builder, all []sim.Violation) {
	for _, v := range all {
		fmt.Fprintf(b, "%s violated: %s\n  %s\n", v.Invariant, v.Invariant.Description(), v.Detail)
	}
}
