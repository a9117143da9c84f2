package doctor

import (
	"slices"
	"strings"
)

// Safety says whether a feature of Pawl may be used with a store.
type Safety string

// The degrees of safety.
const (
	Safe    Safety = "safe"
	Limited Safety = "safe with a limit"
	Unsafe  Safety = "not safe"
)

// Feature is what a store's verdicts mean for something that Pawl does.
type Feature struct {
	Name   string `json:"name"`
	Safety Safety `json:"safety"`
	// Detail is the limit, or names what the store does not honour.
	Detail string `json:"detail,omitempty"`
}

// Safe reports that every feature may be used, if within limits.
func (r *Report) Safe() bool {
	return !slices.ContainsFunc(r.Features, func(f Feature) bool { return f.Safety == Unsafe })
}

// Locks is what the verdicts mean for locks and updates: Safe, Unsafe with what the
// store fails in, or nothing where that is unclear.
func (r *Report) Locks() (Safety, string) { return r.meets(lockNeeds) }

// Listings is what they mean for what semaphores and shared locks need besides:
// they find others by listing them.
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
			failed = append(failed, lacks(c.Name, c.Verdict))
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

// SharedLocks is the name of the feature that needs more of a store than locks do.
const SharedLocks = "semaphores and shared locks"

var lockNeeds = []string{createOnce, replaceMatch, matchMissing, quotedETags, readAfterWrite, wholeReads}

var listingNeeds = []string{listAfterWrite}

// needs says for each feature which checks it stands on, and what is lost
// without others.
var needs = []struct {
	feature string
	checks  []string
	limits  []limit
}{
	{"pipeline outputs", []string{createOnce, replaceMatch}, []limit{
		{readAfterWrite, "an object may be hidden after it was written: set objects.eventually_consistent in the configuration"},
	}},
	{"removals of outputs", nil, []limit{
		{deleteMatch, "it may remove what another has just written: heals by verification, after lease.late_write_window"},
		{readAfterDelete, "a removed object may still be found: its output then stays until somebody looks again"},
	}},
	{"copy", nil, []limit{
		{copyWhole, "objects below 16 MiB stream through the worker"},
		{copyParts, "objects that the store does not copy with one request stream through the worker, and none above 5 GiB can be copied"},
	}},
	{"locks", lockNeeds, nil},
	{"update", lockNeeds, nil},
	{SharedLocks, slices.Concat(lockNeeds, listingNeeds), nil},
	{"audit", listingNeeds, nil},
	{"archives", []string{createOnce, readAfterWrite, listAfterWrite, expiredSignature}, nil},
}

// limit is what a feature does less well where a check is not ok.
type limit struct{ check, says string }

// ignorable is what a store ignores, if it ignores anything in a check.
var ignorable = map[string]string{
	createOnce:   "If-None-Match",
	replaceMatch: "If-Match",
	matchMissing: "If-Match on a missing key",

	expiredSignature: "that a signature has expired",
}

// lacks names what a store does not honour.
func lacks(check string, v Verdict) string {
	if v == Ignored {
		return "it ignores " + ignorable[check] + " (" + check + ")"
	}
	return check + " " + string(v)
}

// features says what the checks mean for each feature.
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
				unmet = append(unmet, lacks(name, verdicts[name]))
			}
		}
		for _, l := range n.limits {
			if verdicts[l.check] != OK {
				limits = append(limits, l.says)
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
