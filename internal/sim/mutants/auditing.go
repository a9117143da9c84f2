package mutants

import "github.com/pawlhq/pawl/internal/sim"

// auditing get wrong what is forgotten, found and raised.
var auditing = []Mutant{
	{
		Name: "removed-without-a-tombstone",
		Edits: []Edit{{"engine/fold.go", "		changes[i] = ledger.Change{Key: en.key, Expect: en.row.Nonce, Row: &en.flight.next}\n", `		changes[i] = ledger.Change{Key: en.key, Expect: en.row.Nonce, Row: &en.flight.next}
		if f := en.flight; f.finish != nil && f.claim == nil && f.next.Settled() && f.next.Have.Kind == event.Removed {
			changes[i].Row = nil
		}
`}, {"engine/fold.go", "import (\n	\"errors\"\n	\"slices\"\n	\"time\"\n\n", "import (\n	\"errors\"\n	\"slices\"\n	\"time\"\n\n	\"github.com/pawlhq/pawl/event\"\n"}},
		Why:    "The creation that the removal overtook comes later, and nobody knows that its object was removed.",
		From:   "the published index of files",
		Budget: 5000,
	},
	{
		Name:   "a-tombstone-shorter-than-the-delay",
		Edits:  []Edit{{"ledger/operate.go", "		r.UpdatedAt.Before(now.Add(-p.Retain)) && ", "		"}},
		Why:    "The same after the row was purged: an event may be later than that.",
		Budget: 20_000,
	},
	{
		Name:   "an-audit-blind-to-what-has-no-row",
		Edits:  []Edit{{"audit/decide.go", "	case seen.Exists && !created:\n", "	case seen.Exists && !created && row.CreatedAt.IsZero():\n		return None\n	case seen.Exists && !created:\n"}},
		Why:    "An upload whose only notification was lost leaves no trace.",
		From:   "the published index of files, and the audit that asks the table only",
		Budget: 1000,
	},
	{
		Name:   "an-audit-that-completes",
		Edits:  []Edit{{"audit/decide.go", "		row = row.Raise(event.Created, seen.Identity, now)\n", "		row = row.Raise(event.Created, seen.Identity, now)\n		row.Have = row.Want\n"}},
		Why:    "It wrote down what it saw, and not what was done.",
		Budget: 1000,
	},
	{
		Name: "an-audit-that-applies-again",
		Edits: []Edit{{"audit/repair.go", "			again = append(again, candidate{key: changes[i].Key})\n", `			c := changes[i]
			for !out[i].Applied && out[i].Current != nil && err == nil {
				c.Expect = out[i].Current.Nonce
				var one []ledger.Outcome
				if one, err = w.Ledger.Swap(ctx, []ledger.Change{c}); err == nil {
					out[i] = one[0]
				}
			}
			w.found(c.Key, losses[i])
`}, {"internal/sim/operator.go", "				th.sleep(w.tape.UpTo(time.Minute))\n", "				th.sleep(w.tape.UpTo(20 * time.Minute))\n"}},
		Why:    "The row has changed since it was loaded. Written over it, the older row takes back what was done meanwhile.",
		Budget: 40_000,
	},
	{
		Name:  "an-audit-that-does-not-wait",
		Edits: []Edit{{"audit/decide.go", "compare(&row, seen, now.Add(-settle))", "compare(&row, seen, now)"}},
		Why:   "What is only late counts as lost. In event order that puts a look in front of the events.",
		Test:  &Test{Args: []string{"./audit", "-run", "TestDecide$"}, Says: "FAIL: TestDecide"},
	},
	{
		Name: "an-audit-that-believes-the-listing",
		Edits: []Edit{
			{"audit/pass.go", "	latest bool\n}", "	latest bool\n	gone   bool\n}"},
			{"audit/pass.go", "		w.open = append(w.open, candidate{key: row.RowKey})\n	case compare(row, seen, forever)", "		w.open = append(w.open, candidate{key: row.RowKey, gone: !seen.Exists})\n	case compare(row, seen, forever)"},
			{"audit/repair.go", "	for i := range looks {\n		if looks[i].unseen {\n			w.counts.Unseen++\n			continue\n		}\n		next, loss", "	for i := range looks {\n		if open[i].gone {\n			looks[i].Seen = Seen{}\n		}\n		if looks[i].unseen {\n			w.counts.Unseen++\n			continue\n		}\n		next, loss"},
		},
		Why:  "A listing is old when it is read, and may leave out what is there. What it does not show counts as removed.",
		From: "tools that mirror a bucket, and delete what a listing lacks",
		Test: &Test{Args: []string{"./audit", "-run", "TestListingsOmit$"}, Says: "FAIL: TestListingsOmit"},
	},
	{
		Name: "an-audit-that-raises-without-looking",
		Edits: []Edit{
			{"audit/pass.go", "	latest bool\n}", "	latest bool\n	seen   Seen\n}"},
			{"audit/pass.go", "		w.open = append(w.open, candidate{key: row.RowKey})\n	case compare(row, seen, forever)", "		w.open = append(w.open, candidate{key: row.RowKey, seen: seen})\n	case compare(row, seen, forever)"},
			{"audit/repair.go", "	for i := range looks {\n		if looks[i].unseen {\n			w.counts.Unseen++\n			continue\n		}\n		next, loss", "	for i := range looks {\n		if looks[i].Exists && open[i].seen.Exists {\n			looks[i].Seen = open[i].seen\n		}\n		if looks[i].unseen {\n			w.counts.Unseen++\n			continue\n		}\n		next, loss"},
		},
		Why:  "What the listing showed has been overwritten since, and the row knows it: Want is raised to what is no more.",
		Test: &Test{Args: []string{"./audit", "-run", "TestListingsOmit$"}, Says: "FAIL: TestListingsOmit"},
	},
	{
		Name:  "an-audit-that-looks-and-then-loads",
		Edits: []Edit{{"audit/repair.go", "	rows, err := w.load(ctx, open)\n	if err != nil {\n		return nil, err\n	}\n	looks, err := w.looks(ctx, open)\n	if err != nil {\n		return nil, err\n	}\n", "	looks, err := w.looks(ctx, open)\n	if err != nil {\n		return nil, err\n	}\n	rows, err := w.load(ctx, open)\n	if err != nil {\n		return nil, err\n	}\n"}},
		Why:   "Between the look and the load the object changed, and a worker did it. The row is compared with what is no more, and nothing refuses the swap.",
		Test:  &Test{Args: []string{"./audit", "-run", "TestLoadsBeforeItLooks$"}, Says: "FAIL: TestLoadsBeforeItLooks"},
	},
	{
		Name:  "an-audit-that-is-ahead-of-its-repairs",
		Edits: []Edit{{"audit/pass.go", "		if err := w.repair(ctx); err != nil {\n			return err\n		}\n		if err := commit(&w.counts); err != nil || !ok {\n			return err\n		}\n", "		if err := commit(&w.counts); err != nil {\n			return err\n		}\n		if err := w.repair(ctx); err != nil || !ok {\n			return err\n		}\n"}},
		Why:   "It is killed when the progress is kept and the repair is not made: nobody goes there again before the next audit.",
		Test:  &Test{Args: []string{"./audit", "-run", "TestKilled$", "-seed", "1"}, Says: "FAIL: TestKilled"},
	},
	{
		Name:   "an-audit-that-never-has-enough",
		Edits:  []Edit{{"audit/decide.go", "!known.Identity.Fits(seen.Identity)", "!known.Identity.Same(seen.Identity)"}},
		Why:    "An event does not say all that a look shows. Compared in full, every object differs, at every audit.",
		Budget: 1000,
	},
}

// stores get the places wrong where rows and objects are, and the simulation
// itself.
var stores = []Mutant{
	{
		Name:  "an-expired-lease-is-not-due",
		Edits: []Edit{{"ledger/memledger/memledger.go", "due: c.Row.Due()}", "due: c.Row.VerifyAt}"}},
		Why:   "A store whose index of due rows knows less than the row leaves some of them lying.",
		Test:  &Test{Invariant: sim.I13, Args: []string{"./internal/sim", "-run", "TestStores$"}, Says: "I13: "},
	},
	{
		Name: "compared-and-then-written",
		Edits: []Edit{
			{"ledger/memledger/memledger.go", "	if e != nil {\n		s.agenda(c.Key.Pipeline).remove(e)\n", "	s.mu.Unlock()\n	runtime.Gosched()\n	s.mu.Lock()\n	if e = s.rows[c.Key]; e != nil {\n		s.agenda(c.Key.Pipeline).remove(e)\n"},
			{"ledger/memledger/memledger.go", "	\"iter\"\n", "	\"iter\"\n	\"runtime\"\n"},
		},
		Why:  "Between the comparison and the write another writes: both are told that theirs is the row.",
		From: "listing, then writing",
		Test: &Test{Invariant: sim.I9, Args: []string{"./ledger/memledger", "-run", "TestConformance/Linear"}, Says: "FAIL: TestConformance/Linear"},
	},
	{
		Name:  "a-condition-that-nobody-holds-to",
		Edits: []Edit{{"bucket/membucket/write.go", "	case c.IfMatch != \"\" && o.info.ETag != c.IfMatch:\n", "	case c.IfMatch != \"\" && len(o.info.ETag) != len(c.IfMatch):\n"}},
		Why:   "A store that ignores If-Match replaces what was never looked at.",
		From:  "object stores that accept preconditions and pass them over",
		Test:  &Test{Invariant: sim.I9, Args: []string{"./bucket/membucket", "-run", "TestConformance/linear"}, Says: "FAIL: TestConformance/linear"},
	},
	{
		Name:  "a-fault-that-never-happens",
		Edits: []Edit{{"internal/sim/fault.go", "		if !s.Has(f) || !w.affords(t, f) {", "		if f == Late && s == StepDelete || !s.Has(f) || !w.affords(t, f) {"}},
		Why:   "A simulation that no longer does what it claims finds nothing, and looks well.",
		Test:  &Test{Invariant: sim.I14, Args: []string{"./internal/sim", "-run", "TestWorlds$", "-seed", "1"}, Says: "I14: never met"},
	},
}
