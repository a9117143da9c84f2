package mutants

// leases get wrong who may act on an object, and until when.
var leases = []Mutant{
	{
		Name: "a-crash-keeps-the-row-for-good",
		Edits: []Edit{{"ledger/row.go", `	case r.Held():
		return r.Lease.Until
`, `	case r.Held():
		return time.Time{}
`}},
		Why:    "A row that a crash left in processing is never looked at again: its event is lost.",
		From:   "the published table of processed keys, and the published lock in DynamoDB",
		Budget: 1000,
	},
	{
		Name:   "a-lease-without-an-end",
		Edits:  []Edit{{"ledger/claim.go", "Fence: a.Fence, Until: now.Add(p.TTL + p.Skew)}", "Fence: a.Fence, Until: now.AddDate(100, 0, 0)}"}},
		Why:    "A holder that crashed locks everybody out.",
		From:   "the published lock object on S3",
		Budget: 100,
	},
	{
		Name:   "a-lease-shorter-than-its-holder-thinks",
		Edits:  []Edit{{"ledger/claim.go", "Fence: a.Fence, Until: now.Add(p.TTL + p.Skew)}", "Fence: a.Fence, Until: now.Add(p.TTL / 2)}"}},
		Why:    "Another begins while the holder still may act: two at a time.",
		Budget: 5000,
	},
	{
		Name: "two-at-a-time",
		Edits: []Edit{
			{"ledger/claim.go", "	case r.Live(now):\n		return r, Claim{}, HeldLive\n", ""},
			{"engine/entry.go", "return !due.IsZero() && !due.After(now) &&", "return (!due.IsZero() && !due.After(now) || row.Live(now)) &&"},
		},
		Why:    "Whoever hears of an object acts on it, even while another does.",
		From:   "every handler without a lock",
		Budget: 500,
	},
	{
		Name:   "a-lease-without-a-fence",
		Edits:  []Edit{{"ledger/claim.go", "return r.Held() && r.Lease.Fence == a.Fence }", "return r.Held() }"}},
		Why:    "A holder that stood still while another took over completes, fails or releases the other's lease.",
		From:   "the published lock object on S3, without a token against a paused holder",
		Budget: 1000,
	},
	{
		Name:   "a-fence-that-stays",
		Edits:  []Edit{{"ledger/claim.go", "a.Fence = max(r.Lease.Fence+1, now.UnixMilli())", "a.Fence = max(r.Lease.Fence, 1)"}},
		Why:    "Nobody can tell the holder from the one before.",
		Budget: 100,
	},
	{
		Name:   "a-fence-that-begins-anew",
		Edits:  []Edit{{"ledger/claim.go", "a.Fence = max(r.Lease.Fence+1, now.UnixMilli())", "a.Fence = r.Lease.Fence + 1"}},
		Why:    "A row that was purged and comes back grants fences that receivers have seen already: they refuse the new holder.",
		Budget: 10_000,
	},
	{
		Name:   "a-fence-by-the-clock-alone",
		Edits:  []Edit{{"ledger/claim.go", "a.Fence = max(r.Lease.Fence+1, now.UnixMilli())", "a.Fence = now.UnixMilli()"}},
		Why:    "The next holder's clock may be behind: its fence is smaller than the one before, and receivers refuse it.",
		Budget: 2000,
	},
	{
		Name:   "a-fence-given-back",
		Edits:  []Edit{{"ledger/finish.go", "	r.Attempts = max(r.Attempts-1, 0)\n	r.note(now, \"released\"", "	r.Attempts = max(r.Attempts-1, 0)\n	r.Lease.Fence = max(r.Lease.Fence-1, 0)\n	r.note(now, \"released\""}},
		Why:    "Nothing was done with it, it seems; but it may have been told to a receiver, which takes the next holder for the same.",
		Budget: 1000,
	},
	{
		Name: "begun-before-the-claim-is-committed",
		Edits: []Edit{
			{"engine/fold.go", "			f.next, f.claim = next, &a\n", "			f.next, f.claim = next, &a\n			e.emit(Start{Claim: a, Deadline: f.at.Add(e.cfg.Policy.TTL)})\n"},
			{"engine/land.go", "	e.emit(Start{Claim: *f.claim, Deadline: f.at.Add(e.cfg.Policy.TTL)})\n", ""},
		},
		Why:    "The claim may be refused: then two act on one object.",
		Budget: 100,
	},
	{
		Name: "a-deadline-counted-from-the-answer",
		Edits: []Edit{
			{"engine/land.go", "e.leased(en, f.at)\n	e.emit(Start{Claim: *f.claim, Deadline: f.at.Add", "e.leased(en, e.now)\n	e.emit(Start{Claim: *f.claim, Deadline: e.now.Add"},
		},
		Why:    "The lease runs from when it was asked for. An answer that takes long leaves less of it than its holder believes.",
		Budget: 20_000,
	},
	{
		Name: "a-renewal-that-takes-the-lease-back",
		Edits: []Edit{{"ledger/claim.go", `	if !r.holds(a) {
		return r, false
	}
	r.Lease.Until`, `	if !r.Held() {
		return r, false
	}
	r.Lease.Fence = a.Fence
	r.Lease.Until`}},
		Why:    "A holder that stood still beyond its lease goes on as if it had it, and the new one loses what it does.",
		Budget: 20_000,
	},
	{
		Name: "dead-and-claimed-again",
		Edits: []Edit{
			{"ledger/claim.go", "	case r.Dead:\n		return r, Claim{}, IsDead\n", ""},
			{"ledger/row.go", "	case r.Dead, r.Unreadable != nil:\n		return time.Time{}\n	case r.Held():\n		return r.Lease.Until", "	case r.Held():\n		return r.Lease.Until"},
		},
		Why:    "A poisonous object is tried for ever.",
		Budget: 2000,
	},
	{
		Name: "attempts-counted-where-they-fail",
		Edits: []Edit{
			{"ledger/claim.go", "	r.Attempts++\n", ""},
			{"ledger/finish.go", "	r.LastError = clip(f.Message)\n	failures := r.Attempts\n", "	r.LastError = clip(f.Message)\n	r.Attempts++\n	failures := r.Attempts\n"},
			{"ledger/finish.go", "	r.Attempts = max(r.Attempts-1, 0)\n	r.note(now, \"released\"", "	r.note(now, \"released\""},
		},
		Why:    "A poison that kills its process never gets to where it would be counted, and kills the next, for ever.",
		From:   "most queues",
		Budget: 5000,
	},
	{
		Name:   "a-takeover-without-a-verification",
		Edits:  []Edit{{"ledger/claim.go", "	if takeover {\n		r.verifyBy(now.Add(p.Horizon))\n	}\n", ""}},
		Why:    "The holder before may have sent a write that has not landed yet. When it does, nobody looks.",
		Budget: 20_000,
	},
	{
		Name: "a-death-without-a-verification",
		Edits: []Edit{
			{"ledger/claim.go", "	if takeover {\n		r.verifyBy(now.Add(p.Horizon))\n	}\n	if r.Attempts >= p.Attempts {\n		return r.retire(now), Claim{}, Retired\n	}\n", "	if r.Attempts >= p.Attempts {\n		return r.retire(now), Claim{}, Retired\n	}\n	if takeover {\n		r.verifyBy(now.Add(p.Horizon))\n	}\n"},
		},
		Why:    "The same where the row is retired instead: the write lands after somebody has redriven it.",
		Budget: 100_000,
	},
	{
		Name:   "work-taken-for-done-when-it-is-claimed",
		Edits:  []Edit{{"ledger/claim.go", "	r.Attempts++\n", "	r.Attempts++\n	r.Have = r.Want\n"}},
		Why:    "Committed before it is done, an effect whose worker ends in between never happens.",
		From:   "the published table of processed keys: at most once, and not once",
		Budget: 500,
	},
	{
		Name:  "a-backlog-for-whoever-comes-first",
		Edits: []Edit{{"engine/lane.go", "len(e.lane(en.key).ready.items) >= e.cfg.Waiting\n", "false\n"}},
		Why:   "The objects of one slow pipeline fill all the room that there is for work, and the notifications of others are turned away.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestBacklogOfASlowPipeline$"}, Says: "FAIL: TestBacklogOfASlowPipeline"},
	},
	{
		Name:  "slots-for-whoever-comes-first",
		Edits: []Edit{{"engine/lane.go", "	if l.running < sure ||", "	if "}},
		Why:   "A pipeline whose attempts take long holds all slots, and the others stand still.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestShares$"}, Says: "FAIL: TestShares"},
	},
	{
		Name:  "a-full-sweep-asked-again-at-once",
		Edits: []Edit{{"engine/sweep.go", "if (fresh > 0 || odd > s.odd) && len(in.Rows)", "if len(in.Rows)"}},
		Why:   "Where all due rows are in flight already, the ledger is asked for the very same ones, as fast as it answers.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestSweepWhileAnAnswerIsAwaited$"}, Says: "FAIL: TestSweepWhileAnAnswerIsAwaited"},
	},
	{
		Name:   "a-loop-without-a-wait",
		Edits:  []Edit{{"engine/sweep.go", "s.next = e.jittered()", "s.next = e.now"}},
		Why:    "Workers ask the ledger for due rows without a pause.",
		From:   "the published lock object on S3, which is asked for in a busy loop",
		Budget: 500,
	},
}
