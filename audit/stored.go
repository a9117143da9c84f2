package audit

import (
	"time"

	"github.com/go-json-experiment/json"
)

// storedReport is the format of reports in the ledger. Other versions of Pawl read it: do not
// change the field names.
type storedReport struct {
	Started      time.Time        `json:"started"`
	Ended        time.Time        `json:"ended,omitzero"`
	By           string           `json:"by,omitzero"`
	Listing      string           `json:"truth"`
	Prefix       string           `json:"prefix,omitzero"`
	SettleWindow string           `json:"settle"`
	DryRun       bool             `json:"dry_run,omitzero"`
	Outputs      bool             `json:"outputs,omitzero"`
	Resumed      int              `json:"resumed,omitzero"`
	Ranges       int              `json:"ranges"`
	Pipelines    []storedPipeline `json:"pipelines"`
}

type storedPipeline struct {
	Name string `json:"name"`
	storedCounts
}

type storedCounts struct {
	Listed         int64 `json:"listed"`
	Rows           int64 `json:"rows"`
	Inspected      int64 `json:"looked"`
	LostCreations  int64 `json:"lost_creations"`
	LostOverwrites int64 `json:"lost_overwrites"`
	LostRemovals   int64 `json:"lost_removals"`
	NoOutput       int64 `json:"no_output"`
	NoInput        int64 `json:"no_input"`
	Repaired       int64 `json:"repaired"`
	Created        int64 `json:"created"`
	Removable      int64 `json:"removable"`
	Withheld       int64 `json:"withheld"`
	TooRecent      int64 `json:"young"`
	PossiblyPurged int64 `json:"passed_over"`
	Dead           int64 `json:"dead"`
	Failed         int64 `json:"failed"`
	Redriven       int64 `json:"redriven"`
	Unreadable     int64 `json:"unreadable"`
	Inaccessible   int64 `json:"unseen"`
	Foreign        int64 `json:"foreign"`
	Contradicted   int64 `json:"contradicted"`
}

// registerReport marshals a Report, without examples, as a storedReport.
type registerReport Report

// MarshalJSON implements [json.Marshaler].
func (r registerReport) MarshalJSON() ([]byte, error) {
	s := storedReport{
		Started: r.Started, Ended: r.Ended, By: r.By, Listing: r.Listing, Prefix: r.Prefix, SettleWindow: r.SettleWindow,
		DryRun: r.DryRun, Outputs: r.Outputs, Resumed: r.Resumed, Ranges: r.Ranges,
	}
	for i := range r.Pipelines {
		s.Pipelines = append(s.Pipelines, storedPipeline{r.Pipelines[i].Name, storedCounts(r.Pipelines[i].Counts)})
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *registerReport) UnmarshalJSON(b []byte) error {
	var s storedReport
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*r = registerReport{
		Started: s.Started, Ended: s.Ended, By: s.By, Listing: s.Listing, Prefix: s.Prefix, SettleWindow: s.SettleWindow,
		DryRun: s.DryRun, Outputs: s.Outputs, Resumed: s.Resumed, Ranges: s.Ranges,
	}
	for i := range s.Pipelines {
		r.Pipelines = append(r.Pipelines, PipelineReport{s.Pipelines[i].Name, Counts(s.Pipelines[i].storedCounts)})
	}
	return nil
}
