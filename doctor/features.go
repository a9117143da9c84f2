package doctor

import (
	"slices"
	"strings"
)

// Safety is the safety of a feature with a store.
type Safety string

// Values of Safety.
const (
	Safe    Safety = "safe"
	Limited Safety = "safe with a limit"
	Unsafe  Safety = "not safe"
)

// Feature is a feature of Pawl and its safety.
type Feature struct {
	Name   string `json:"name"`
	Safety Safety `json:"safety"`
	Detail string `json:"detail,omitempty"`
}

// Safe reports whether no feature is Unsafe.
func (r *Report) Safe() bool {
	return !slices.ContainsFunc(r.Features, func(f Feature) bool { return f.Safety == Unsafe })
}

// Locks returns the safety of locks and updates: Safe, or Unsafe with the failed checks, or "" if
// the checks are unclear.
func (r *Report) Locks() (Safety, string) { return r.meets(lockNeeds) }

// Listings returns the same as Locks, for the listings that shared locks and semaphores need.
func (r *Report) Listings() (Safety, string) { return r.meets(listingNeeds) }

func (r *Report) meets(needs []string) (Safety, string) {
	var failed []string
	ok := 0
	for _, c := range r.Checks {
		switch {
		case !slices.Contains(needs, c.Name):
		case c.Verdict == OK:
			ok++
		case c.Verdict != Unclear:
			failed = append(failed, describeFailure(c.Name, c.Verdict))
		}
	}
	switch {
	case len(failed) > 0:
		return Unsafe, strings.Join(failed, ", ")
	case ok == len(needs):
		return Safe, ""
	}
	return "", ""
}

// SharedLocks is the feature that needs listings in addition to lockNeeds.
const SharedLocks = "semaphores and shared locks"

var lockNeeds = []string{createOnce, replaceMatch, matchMissing, quotedETags, readAfterWrite, wholeReads}

var listingNeeds = []string{listAfterWrite}

// A feature has the limits of other checks that fail.
var needs = []struct {
	feature string
	checks  []string
	limits  []limit
}{
	{"pipeline outputs", []string{createOnce, replaceMatch}, []limit{
		{readAfterWrite, "an object may be invisible for a while after a write: set objects.eventually_consistent in the configuration"},
	}},
	{"removals of outputs", nil, []limit{
		{deleteMatch, "it may remove an output that another worker has just written: verification repairs it after lease.late_write_window"},
		{readAfterDelete, "a removed object may still be found: its output then stays until the next notification or audit"},
	}},
	{"copy", nil, []limit{
		{copyWhole, "objects below 16 MiB stream through the worker"},
		{copyParts, "objects that the store cannot copy with one request stream through the worker, and objects above 5 GiB cannot be copied"},
	}},
	{"locks", lockNeeds, nil},
	{"update", lockNeeds, nil},
	{SharedLocks, slices.Concat(lockNeeds, listingNeeds), nil},
	{"audit", listingNeeds, nil},
	{"archives", []string{createOnce, readAfterWrite, listAfterWrite, expiredSignature}, nil},
}

type limit struct{ check, detail string }

var ignoredParts = map[string]string{
	createOnce:   "If-None-Match",
	replaceMatch: "If-Match",
	matchMissing: "If-Match on a missing key",

	expiredSignature: "that a signature has expired",
}

func describeFailure(check string, v Verdict) string {
	if v == Ignored {
		return "it ignores " + ignoredParts[check] + " (" + check + ")"
	}
	return check + " " + string(v)
}

func features(checks []Check) (all []Feature) {
	verdicts := make(map[string]Verdict)
	for _, c := range checks {
		verdicts[c.Name] = c.Verdict
	}
	for _, n := range needs {
		f := Feature{Name: n.feature, Safety: Safe}
		var unmet, limits []string
		for _, name := range n.checks {
			if verdicts[name] != OK {
				unmet = append(unmet, describeFailure(name, verdicts[name]))
			}
		}
		for _, l := range n.limits {
			if verdicts[l.check] != OK {
				limits = append(limits, l.detail)
			}
		}
		switch {
		case len(unmet) > 0:
			f.Safety, f.Detail = Unsafe, strings.Join(unmet, ", ")
		case len(limits) > 0:
			f.Safety, f.Detail = Limited, strings.Join(limits, "; ")
		}
		all = append(all, f)
	}
	return all
}
