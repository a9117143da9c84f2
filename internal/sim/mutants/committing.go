package mutants

var rowTells = &Test{Args: []string{"./worker", "-run", "TestTheRowTellsOfACommit$"}, Says: "FAIL: TestTheRowTellsOfACommit"}

// committing get wrong what a handler commits together with its effect.
var committing = []Mutant{
	{
		Name:   "a-commit-in-doubt",
		Edits:  []Edit{{"ledger/decide.go", "{ return a.Forced || !a.had(r) }", "{ return a.Forced || a.Doubt || !a.had(r) }"}},
		Why:    "A crash after the commit brings a second one: the row knows that the first was made, and is not believed.",
		Budget: 20_000,
	},
	{
		Name:   "a-commit-without-a-fence",
		Edits:  []Edit{{"ledger/completion.go", "	next, ok := row.Complete(", "	c.Claim.Fence = row.Lease.Fence\n	next, ok := row.Complete("}},
		Why:    "A handler that stood still while another took over commits under the other's lease.",
		Budget: 20_000,
	},
	{
		Name:   "a-commit-believed-without-a-look",
		Edits:  []Edit{{"worker/transaction.go", "	if !x.asked {\n", "	if x.asked {\n		return nil\n	}\n	if !x.asked {\n"}},
		Why:    "A commit that never arrived is taken for one whose answer was lost: Have rises without an effect.",
		Budget: 20_000,
	},
	{
		Name:  "a-commit-taken-for-a-lost-lease",
		Edits: []Edit{{"engine/fold.go", "	if !f.renewed && !en.row.CommittedBy(en.attempt) {", "	if !f.renewed {"}},
		Why:   "A renewal that the commit overtook cancels the handler that has just succeeded.",
		Test:  rowTells,
	},
	{
		Name:  "a-commit-that-only-its-answer-tells-of",
		Edits: []Edit{{"worker/transaction.go", "CommittedBy(&x.Claim):", "CommittedBy(&x.Claim) && err == nil:"}, {"engine/fold.go", "	if in.Transactional && en.row.CommittedBy(a) {", "	if false {"}},
		Why:   "An answer that was lost makes a failure of what was committed.",
		Test:  rowTells,
	},
	{
		Name:  "a-transaction-sent-before-its-commit",
		Edits: []Edit{{"worker/attempt.go", "x.pinned == nil && !x.Pipeline.Transactional", "x.pinned == nil"}},
		Why:   "A transaction that was rolled back leaves a doubt, although nothing of it is left.",
		Test:  rowTells,
	},
}
