package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/pawlhq/pawl/proof/rig"
)

// FilesReport is the result of the demo of files.
type FilesReport struct {
	Seed          uint64       `json:"seed"`
	Seconds       float64      `json:"seconds"`
	Uploads       Uploads      `json:"uploads"`
	Notifications rig.Messages `json:"notifications"`
	Services      struct {
		Started int `json:"started"`
		Killed  int `json:"killed"`
	} `json:"services"`
	// Healed counts the files whose notification was lost.
	Healed struct {
		Complete int `json:"complete"` // by a complete request of the client
		Audit    int `json:"audit"`
	} `json:"healed"`
	Files struct {
		Visible int `json:"visible"`
		Gone    int `json:"gone"`    // deleted files whose bytes a service removed
		Expired int `json:"expired"` // files whose bytes did not arrive
		// Right is the number of files with the expected state and bytes.
		Right int      `json:"right"`
		Of    int      `json:"of"`
		Wrong []string `json:"wrong,omitempty"`
	} `json:"files"`
	OK bool `json:"ok"`
}

// Uploads counts the actions of clients.
type Uploads struct {
	Begun     int `json:"begun"`
	Refused   int `json:"refused"` // PUTs that the store refused
	BrokenOff int `json:"broken_off"`
	Repeated  int `json:"repeated"` // requests with the same idempotency key
	Deleted   int `json:"deleted"`
	Undeleted int `json:"undeleted"`
}

func (r *FilesReport) err() error {
	if r.OK {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", ErrWrong, strings.Join(r.Files.Wrong, "\n  "))
}

// Print writes the report as a table.
func (r *FilesReport) Print(w io.Writer) error {
	summary := "Some checks failed."
	if r.OK {
		summary = fmt.Sprintf("All checks passed: index and bucket agree about %d of %d files, in %.1f s.", r.Files.Right, r.Files.Of, r.Seconds)
	}
	u, n := &r.Uploads, &r.Notifications
	return printTable(w, []section{
		{"Uploads", []line{
			{"begun", u.Begun}, {"wrong PUTs refused", u.Refused}, {"broken off", u.BrokenOff}, {"repeated by idempotency key", u.Repeated},
		}},
		{"Notifications", []line{{"sent", n.Sent}, {"delivered twice", n.Doubled}, {"delayed", n.Delayed}, {"dropped", n.Dropped}}},
		{"Services", []line{{"started", r.Services.Started}, {"killed in mid-work", r.Services.Killed}}},
		{"Healed", []line{{"by a complete request", r.Healed.Complete}, {"by an audit", r.Healed.Audit}}},
		{"Files", []line{
			{"visible", r.Files.Visible}, {"deleted and undeleted", u.Undeleted}, {"deleted and gone", r.Files.Gone}, {"expired", r.Files.Expired},
			{"right", fmt.Sprintf("%d of %d", r.Files.Right, r.Files.Of)},
		}},
	}, summary)
}
