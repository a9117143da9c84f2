package mutants

// endings get wrong what is left in the row when an attempt ends.
var endings = []Mutant{
	{
		Name:   "have-taken-from-want-at-the-end",
		Edits:  []Edit{{"ledger/finish.go", "Sequencer: a.Want.Sequencer, Generation: a.Want.Generation, Kind", "Sequencer: r.Want.Sequencer, Generation: r.Want.Generation, Kind"}},
		Why:    "What was heard of during the attempt counts as done, though it was not looked at.",
		Budget: 5000,
	},
	{
		Name:   "unsure-and-completed-without-a-verification",
		Edits:  []Edit{{"ledger/finish.go", "	r.endLease(e, p, now)\n	r.Attempts, r.RetryAt", "	r.endLease(&Ending{}, p, now)\n	r.Attempts, r.RetryAt"}},
		Why:    "A publish without an answer lands after the attempt has completed by another one, and nobody looks.",
		Budget: 30_000,
	},
	{
		Name:  "unsure-and-failed-without-a-verification",
		Edits: []Edit{{"ledger/finish.go", "	r.endLease(e, p, now)\n	r.LastError", "	r.endLease(&Ending{}, p, now)\n	r.LastError"}},
		Why:   "The same for an attempt that failed: what it sent lands after the next one has completed.",
		Test:  &Test{Args: []string{"./ledger", "-run", "TestTranscripts$"}, Says: "FAIL: TestTranscripts/takeover-and-verification.txt"},
	},
	{
		Name:  "unsure-and-released-without-a-verification",
		Edits: []Edit{{"ledger/finish.go", "	r.endLease(e, p, now)\n	r.Attempts = max", "	r.endLease(&Ending{}, p, now)\n	r.Attempts = max"}},
		Why:   "The same for an attempt that was given back at shutdown.",
		Test:  &Test{Args: []string{"./ledger", "-run", "TestTranscripts$"}, Says: "FAIL: TestTranscripts/release.txt"},
	},
	{
		Name:   "doubt-not-raised-by-the-claim",
		Edits:  []Edit{{"ledger/claim.go", "	r.Doubt = true\n", ""}},
		Why:    "A worker crashed after its publish. The object is what it was before, so the next attempt finds nothing to do, and the output stays wrong.",
		Budget: 20_000,
	},
	{
		Name:   "doubt-not-cleared-by-the-completion",
		Edits:  []Edit{{"ledger/finish.go", "	r.Doubt = false\n", ""}},
		Why:    "Where the effect is elsewhere, every later event is acted upon once more.",
		Budget: 1000,
	},
	{
		Name:   "doubt-dropped-by-a-failure",
		Edits:  []Edit{{"ledger/finish.go", "	if !e.Sent {", "	if true {"}},
		Why:    "What a failed attempt has sent is forgotten: the next one trusts what was committed before.",
		Budget: 80_000,
	},
	{
		Name:  "a-verification-cleared-by-another",
		Edits: []Edit{{"ledger/finish.go", "if a.Verifying && r.VerifyAt.Equal(a.verifyAt) {", "if a.Verifying {"}},
		Why:   "A worker asked for a look at a later time, while an earlier one was under way. That one clears both.",
		Test:  &Test{Args: []string{"./ledger", "-run", "TestTranscripts$"}, Says: "FAIL: TestTranscripts/suspect.txt"},
	},
	{
		Name:   "a-verification-cleared-by-any-completion",
		Edits:  []Edit{{"ledger/finish.go", "if a.Verifying && r.VerifyAt.Equal(a.verifyAt) {", "if r.VerifyAt.Equal(a.verifyAt) {"}},
		Why:    "A completion before its time says nothing of a write that may land yet.",
		Budget: 20_000,
	},
	{
		Name:   "a-lost-lease-kept-secret",
		Edits:  []Edit{{"engine/fold.go", "	f.next = f.next.Suspect(&in.Ending, p, e.now)\n	return true\n", "	return false\n"}},
		Why:    "A worker stood still for longer than every verification waits, and sends its write then. Only it could have said so.",
		Budget: 50_000,
	},
	{
		Name: "a-failure-kills-what-it-has-not-seen",
		Edits: []Edit{
			{"ledger/finish.go", "	moved := r.Want.Compare(a.Want) != 0\n", ""},
			{"ledger/finish.go", "f.Permanent && !moved:", "f.Permanent:"},
		},
		Why:    "An upload that cannot be handled is corrected while it fails: the row dies, and the correction with it.",
		Budget: 20_000,
	},
	{
		Name: "a-conflict-taken-for-done-elsewhere",
		Edits: []Edit{{"engine/fold.go", `	en.observe = append(f.observed, en.observe...)
	if f.finish != nil { // else`, `	for _, o := range f.observed {
		e.close(o.delivery)
	}
	if f.finish != nil { // else`}},
		Why:    "That another has written the row does not mean that it has heard of this event.",
		From:   "handlers on a table with a conditional write",
		Budget: 1000,
	},
	{
		Name: "a-time-out-of-the-ledger-taken-for-success",
		Edits: []Edit{{"ledger/ledger.go", "			open, err = append(open, part...), failed\n			continue\n", `			for _, c := range part {
				s.out[c] = Outcome{Applied: true}
			}
			continue
`}},
		Why:    "A change without an answer may never have been made.",
		Budget: 1000,
	},
	{
		Name:   "a-lone-missing-answer-taken-for-success",
		Edits:  []Edit{{"ledger/ledger.go", "				open, err = append(open, c), answers[i].Err\n				continue\n", "				answers[i] = Outcome{Applied: true}\n"}},
		Why:    "The answer to a batch does not answer each of its changes: a throttled one was not made.",
		Budget: 20_000,
	},
	{
		Name:   "a-counter-for-a-nonce",
		Edits:  []Edit{{"engine/fold.go", "	f.next.Nonce = e.nonce()\n", "	f.next.Nonce = en.row.Nonce\n	f.next.Nonce[15]++\n"}},
		Why:    "Two workers count to the same number: after a time-out each takes the other's write for its own. And a row that comes back after a purge begins to count again.",
		Budget: 5000,
	},
	{
		Name:  "an-end-taken-for-landed-in-a-dead-row",
		Edits: []Edit{{"engine/fold.go", " && (f.next.Dead || !row.Dead) &&", " &&"}},
		Why:   "The write that ended an attempt was refused by a row that another has retired meanwhile: it had not landed, though Have is the same.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestTranscripts$"}, Says: "FAIL: TestTranscripts/08_retired_by_another"},
	},
	{
		Name:  "an-end-without-a-word-taken-for-sure",
		Edits: []Edit{{"worker/perform.go", "ledger.Ending{Sent: true, Unsure: true}", "ledger.Ending{Sent: true}"}},
		Why:   "A handler ended its goroutine, after its attempt had sent a write of unknown fate and started over. Nobody looks when it lands.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestAHandlerThatEndsItsGoroutine$"}, Says: "FAIL: TestAHandlerThatEndsItsGoroutine"},
	},
	{
		Name:  "a-late-write-forgotten-with-its-row-dead",
		Edits: []Edit{{"engine/fold.go", " && (f.next.Dead || !row.Dead) &&\n			!row.VerifyAt.Before(f.next.VerifyAt)\n", " && (f.next.Dead || !row.Dead)\n"}},
		Why:   "The last attempt sent a write of unknown fate, and another has retired the row meanwhile. Taken for landed, its word is lost, and the write may land when somebody has revived the row.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestTranscripts$"}, Says: "FAIL: TestTranscripts/29_unsure_and_retired"},
	},
	{
		Name:   "at-most-once",
		Edits:  []Edit{{"worker/attempt.go", "	case err == nil:\n		fin.Result = engine.Completed\n", "	case err == nil, x.ending.Read.Kind != 0:\n		fin.Result = engine.Completed\n"}},
		Why:    "What was tried counts as done, whatever came of it.",
		From:   "the published table of processed keys",
		Budget: 1000,
	},
}
