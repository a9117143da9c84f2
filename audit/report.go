package audit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Counts are the results of an audit.
type Counts struct {
	Listed    int64 `json:"listed"`
	Rows      int64 `json:"rows"`
	Inspected int64 `json:"inspected"` // HEAD requests sent

	LostCreations  int64 `json:"lost_creations"`
	LostOverwrites int64 `json:"lost_overwrites"`
	LostRemovals   int64 `json:"lost_removals"`
	// Only audits with Outputs set the next two: objects without output, and outputs without
	// object.
	NoOutput int64 `json:"no_output"`
	NoInput  int64 `json:"no_input"`
	Repaired int64 `json:"repaired"`

	Created   int64 `json:"created"`   // rows of existing objects
	Removable int64 `json:"removable"` // removals found by the first pass
	Withheld  int64 `json:"withheld"`  // removals over the limit, not written

	TooRecent      int64 `json:"too_recent"`      // differences within the settle window
	PossiblyPurged int64 `json:"possibly_purged"` // no row, and older than the purge watermark
	Dead           int64 `json:"dead"`
	Failed         int64 `json:"failed"`
	Redriven       int64 `json:"redriven"`     // dead and failed rows whose attempts were reset
	Unreadable     int64 `json:"unreadable"`   // rows that this version of Pawl cannot read
	Inaccessible   int64 `json:"inaccessible"` // the store denies, rejects or cannot list them
	Foreign        int64 `json:"foreign"`      // objects among the outputs that the pipeline did not write
	// Contradicted counts objects for which listing and HEAD disagree.
	Contradicted int64 `json:"contradicted"`
}

// Lost returns the number of lost notifications.
func (c *Counts) Lost() int64 { return c.LostCreations + c.LostOverwrites + c.LostRemovals }

// Found returns the number of findings. If it is not 0, pawl audit exits with code 3.
func (c *Counts) Found() int64 {
	return c.Lost() + c.NoOutput + c.NoInput + c.Withheld + c.Contradicted
}

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

// addFinding counts None as a redriven row.
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

// Add adds o to c.
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

// Report is the report of a running or finished audit.
type Report struct {
	Started      time.Time `json:"started"`
	Ended        time.Time `json:"ended,omitzero"`
	By           string    `json:"by,omitzero"` // owner name of the process
	Listing      string    `json:"listing"`     // "list", or the name of an inventory report
	Prefix       string    `json:"prefix,omitzero"`
	SettleWindow string    `json:"settle"`
	DryRun       bool      `json:"dry_run,omitzero"`
	Outputs      bool      `json:"outputs,omitzero"`
	// Resumed counts the interruptions. The counts may lack repairs just before one.
	Resumed   int              `json:"resumed,omitzero"`
	Ranges    int              `json:"ranges"` // number of parallel key ranges
	Pipelines []PipelineReport `json:"pipelines"`
	// Examples are the first findings, at most 20. Stored reports have no examples.
	Examples []Example `json:"examples,omitempty"`
}

// PipelineReport has the counts of one pipeline.
type PipelineReport struct {
	Name string `json:"name"`
	Counts
}

// Example is one finding.
type Example struct {
	What     string `json:"what"`
	Pipeline string `json:"pipeline"`
	Object   string `json:"object"`           // in the format of event.Object.String
	Output   string `json:"output,omitempty"` // output to remove, if it has no object
}

// Total returns the sum of all pipelines.
func (r *Report) Total() (all Counts) {
	for i := range r.Pipelines {
		all.Add(&r.Pipelines[i].Counts)
	}
	return all
}

// Log logs the report: withheld removals as an error, other findings as a warning.
func (r *Report) Log(to *slog.Logger) {
	total := r.Total()
	level, message := slog.LevelInfo, "audit complete: no losses"
	if total.Found() > 0 {
		level, message = slog.LevelWarn, "audit complete: found losses and scheduled repairs"
	}
	if total.Withheld > 0 {
		level, message = slog.LevelError, fmt.Sprintf("audit complete: scheduled %d removals and withheld %d, because too many objects are missing from the bucket: check the endpoint and the bucket; if the removals are right, run pawl audit --allow-removals",
			total.LostRemovals+total.NoInput, total.Withheld)
	}
	to.Log(context.Background(), level, message, "listed", total.Listed, "rows", total.Rows,
		"lost_creations", total.LostCreations, "lost_overwrites", total.LostOverwrites, "lost_removals", total.LostRemovals,
		"withheld", total.Withheld, "contradicted", total.Contradicted, "no_output", total.NoOutput, "no_input", total.NoInput, "possibly_purged", total.PossiblyPurged, "dead", total.Dead, "failed", total.Failed, "inaccessible", total.Inaccessible,
		"took", r.Ended.Sub(r.Started).Round(time.Millisecond))
}
