package audit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Counts is what an audit came to.
type Counts struct {
	Listed    int64 `json:"listed"`    // objects
	Rows      int64 `json:"rows"`      // of the ledger
	Inspected int64 `json:"inspected"` // requests for single objects

	LostCreations  int64 `json:"lost_creations"`
	LostOverwrites int64 `json:"lost_overwrites"`
	LostRemovals   int64 `json:"lost_removals"`
	// With Outputs: objects whose output is missing, and outputs whose object is.
	NoOutput int64 `json:"no_output"`
	NoInput  int64 `json:"no_input"`
	Repaired int64 `json:"repaired"` // of all these

	Created   int64 `json:"created"`   // rows that say that their object exists
	Removable int64 `json:"removable"` // removals that the first pass counted; the second confirms them
	Withheld  int64 `json:"withheld"`  // removals that were too many to be raised

	TooRecent      int64 `json:"too_recent"`      // differ, and are too young to tell
	PossiblyPurged int64 `json:"possibly_purged"` // have no row, and a purge may have dropped it
	Dead           int64 `json:"dead"`            // rows that will not be tried again
	Failed         int64 `json:"failed"`          // rows that back off
	Redriven       int64 `json:"redriven"`        // of these two
	Unreadable     int64 `json:"unreadable"`      // rows
	Inaccessible   int64 `json:"inaccessible"`    // objects that the store does not let us look at, or cannot list
	Foreign        int64 `json:"foreign"`         // objects among the outputs that are not the pipeline's
	// Contradicted counts objects that are listed while HEAD does not find them, or the reverse.
	Contradicted int64 `json:"contradicted"`
}

// Lost is how many notifications were lost.
func (c *Counts) Lost() int64 { return c.LostCreations + c.LostOverwrites + c.LostRemovals }

// Found is how much was not as it should be: exit code 3.
func (c *Counts) Found() int64 {
	return c.Lost() + c.NoOutput + c.NoInput + c.Withheld + c.Contradicted
}

// addRow takes note of a row.
func (c *Counts) addRow(row *ledger.Row, now time.Time) {
	c.Rows++
	if row.Have.Kind == event.Created {
		c.Created++
	}
	switch row.State(now) {
	case ledger.StateDead:
		c.Dead++
	case ledger.StateFailed:
		c.Failed++
	case ledger.StateUnreadable:
		c.Unreadable++
	}
}

// addFinding takes note of a loss, or of a row that was redriven for none.
func (c *Counts) addFinding(l Finding, repaired bool) {
	switch l {
	case LostCreation:
		c.LostCreations++
	case LostOverwrite:
		c.LostOverwrites++
	case LostRemoval:
		c.LostRemovals++
	case None:
		if repaired {
			c.Redriven++
		}
		return
	}
	if repaired {
		c.Repaired++
	}
}

// Add adds what another part of an audit came to.
func (c *Counts) Add(o *Counts) {
	into, from := c.fields(), o.fields()
	for i := range into {
		*into[i] += *from[i]
	}
}

func (c *Counts) fields() [21]*int64 {
	return [...]*int64{
		&c.Listed, &c.Rows, &c.Inspected, &c.LostCreations, &c.LostOverwrites, &c.LostRemovals, &c.NoOutput, &c.NoInput, &c.Repaired,
		&c.Created, &c.Removable, &c.Withheld, &c.Contradicted, &c.TooRecent, &c.PossiblyPurged, &c.Dead, &c.Failed, &c.Redriven, &c.Unreadable, &c.Inaccessible, &c.Foreign,
	}
}

// Report is an audit, done or under way.
type Report struct {
	Started      time.Time `json:"started"`
	Ended        time.Time `json:"ended,omitzero"`
	By           string    `json:"by,omitzero"`     // the process
	Listing      string    `json:"listing"`         // where the objects were listed
	Prefix       string    `json:"prefix,omitzero"` // of keys, if not all
	SettleWindow string    `json:"settle"`
	DryRun       bool      `json:"dry_run,omitzero"`
	Outputs      bool      `json:"outputs,omitzero"`
	// Resumed is how often it went on after its process had ended. What was found in
	// the moment before that is repaired, and may be missing from the counts.
	Resumed   int              `json:"resumed,omitzero"`
	Ranges    int              `json:"ranges"` // into which the keys were split
	Pipelines []PipelineReport `json:"pipelines"`
	// Examples are some of what was found. The ledger does not keep them.
	Examples []Example `json:"examples,omitempty"`
}

// PipelineReport is what an audit of one pipeline came to.
type PipelineReport struct {
	Name string `json:"name"`
	Counts
}

// Example is a loss.
type Example struct {
	What     string `json:"what"`
	Pipeline string `json:"pipeline"`
	Object   string `json:"object"`           // as event.Object prints it
	Output   string `json:"output,omitempty"` // of an output without its object: what is removed
}

// Total sums up the pipelines.
func (r *Report) Total() (all Counts) {
	for i := range r.Pipelines {
		all.Add(&r.Pipelines[i].Counts)
	}
	return all
}

// Log writes a line of the log: a warning if something was lost.
func (r *Report) Log(to *slog.Logger) {
	total := r.Total()
	level, message := slog.LevelInfo, "audit complete: no losses"
	if total.Found() > 0 {
		level, message = slog.LevelWarn, "audit complete: found losses and scheduled repairs"
	}
	if total.Withheld > 0 {
		level, message = slog.LevelError, fmt.Sprintf("audit complete: raised %d removals and withheld %d, because too many objects are missing from the bucket: check the endpoint and the bucket; if the removals are right, run pawl audit --allow-removals",
			total.LostRemovals+total.NoInput, total.Withheld)
	}
	to.Log(context.Background(), level, message, "listed", total.Listed, "rows", total.Rows,
		"lost_creations", total.LostCreations, "lost_overwrites", total.LostOverwrites, "lost_removals", total.LostRemovals,
		"withheld", total.Withheld, "contradicted", total.Contradicted, "no_output", total.NoOutput, "no_input", total.NoInput, "possibly_purged", total.PossiblyPurged, "dead", total.Dead, "failed", total.Failed, "inaccessible", total.Inaccessible,
		"took", r.Ended.Sub(r.Started).Round(time.Millisecond))
}
