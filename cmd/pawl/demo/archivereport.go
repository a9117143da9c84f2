package demo

import (
	"fmt"
	"io"
	"net/http"
)

// ArchiveReport is the result of the demo of archives.
type ArchiveReport struct {
	Seconds float64 `json:"seconds"`
	Records Records `json:"records"`
	Workers struct {
		Started int `json:"started"`
		Killed  int `json:"killed"`
	} `json:"workers"`
	// LatePut is the status of the killed worker's delayed PUT. It is 412, because another worker
	// has stored the object meanwhile.
	LatePut int `json:"late_put"`
	// Verify is the output of "pawl archive verify --deep".
	Verify struct {
		Objects  int   `json:"objects"`
		Shards   int   `json:"shards"`
		Findings []any `json:"findings"`
	} `json:"verify"`
	OK bool `json:"ok"`
}

// Records counts the records by how often each is stored.
type Records struct {
	Put     int `json:"put"`
	Once    int `json:"once"`
	Missing int `json:"missing"`
	Doubled int `json:"doubled"`
	Others  int `json:"others"` // stored, but never put by the demo
}

func (r *ArchiveReport) err() error {
	if r.OK {
		return nil
	}
	return fmt.Errorf("%w: of %d records, %d are stored once, %d never, and %d more than once; %d other records; verify has %s; the late PUT was answered with %d",
		ErrWrong, r.Records.Put, r.Records.Once, r.Records.Missing, r.Records.Doubled, r.Records.Others, plural(len(r.Verify.Findings), "finding"), r.LatePut)
}

// Print writes the report as a table.
func (r *ArchiveReport) Print(w io.Writer) error {
	refused := 0
	if r.LatePut == http.StatusPreconditionFailed {
		refused = 1
	}
	summary := "Some checks failed."
	if r.OK {
		summary = fmt.Sprintf("All checks passed: %d of %d records are stored exactly once, in %.1f s.", r.Records.Once, r.Records.Put, r.Seconds)
	}
	return printTable(w, []section{
		{"Records", []line{{"put", r.Records.Put}, {"stored once", r.Records.Once}, {"missing", r.Records.Missing}, {"doubled", r.Records.Doubled}}},
		{"Workers", []line{{"started", r.Workers.Started}, {"killed in mid-work", r.Workers.Killed}, {"late objects refused", refused}}},
		{"Archive", []line{{"objects", r.Verify.Objects}, {"shards", r.Verify.Shards}, {"findings", len(r.Verify.Findings)}}},
	}, summary)
}
