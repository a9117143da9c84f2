package mutants

// writing get wrong what an answer means for a write on a condition, whatever it
// writes, and to what.
var writing = []Mutant{
	{
		Name:  "a-refusal-for-good-that-ends-all-doubt",
		Edits: []Edit{{"cell/write.go", "errors.Is(answer, ErrRefused) && (w.Trust.Refusal || !w.doubt):", "errors.Is(answer, ErrRefused):"}},
		Why:   "An earlier request landed, and its answer was lost. Then access was denied: the write counts as lost.",
		Test:  cellTest("TestWrite/refused_after_silence,_and_there"),
	},
	{
		Name:  "a-write-that-ends-in-doubt-taken-for-lost",
		Edits: []Edit{{"cell/write.go", "	if w.doubt {\n", "	if w.doubt && w.Unanswered < 0 {\n"}},
		Why:   "Whoever gave up while a request was on its way does not look for it, and waits for itself the next time.",
		Test:  cellTest("TestWrite/silence_three_times"),
	},
	{
		Name:  "412-believed-after-silence",
		Edits: []Edit{{"cell/write.go", " && w.Trust.Precondition && w.Unanswered == 0:", " && w.Trust.Precondition:"}},
		Why:   "The refusal is of the second request, for the first had landed.",
		Test:  cellTest("TestWrite/412_after_silence,_trusted,_and_there"),
	},
	{
		Name:  "409-believed-by-all",
		Edits: []Edit{{"cell/write.go", "errors.Is(answer, ErrConflict) && w.Trust.Conflict:", "errors.Is(answer, ErrConflict):"}},
		Why:   "It may be the answer to a copy: a lock is sent for again that one holds already.",
		Test:  cellTest("TestWrite/409,_and_there"),
	},
	{
		Name:  "412-without-a-look-taken-for-answered",
		Edits: []Edit{{"cell/write.go", "		w.Unanswered += w.Resolves\n", "		w.Unanswered += 0\n"}},
		Why:   "Nobody could look whether the refusal was of a copy of what had landed, and the attempt calls itself sure.",
		Test:  cellTest("TestWrite/412,_no_look"),
	},
	{
		Name:  "a-request-never-sent-taken-for-unanswered",
		Edits: []Edit{{"cell/write.go", "		case errors.Is(answer, ErrUnsent), errors.Is(", "		case errors.Is("}},
		Why:   "A body that cannot be opened makes an attempt unsure, and every one like it is verified for nothing.",
		Test:  cellTest("TestWrite/unsent"),
	},
	{
		Name:  "a-removal-found-taken-for-its-own",
		Edits: []Edit{{"bucket/publish.go", "send, isOurs, 0)", "send, isOurs, 1)"}},
		Why:   "Nothing tells who removed the object: the request may be on its way still, and remove what comes back.",
		Test:  &Test{Args: []string{"./bucket", "-run", "TestLateRemoval$"}, Says: "FAIL: TestLateRemoval"},
	},
	{
		Name:  "a-register-without-an-answer-taken-for-refused",
		Edits: []Edit{{"ledger/cell.go", "c.failed(err, cell.ErrUnclear)", "c.failed(err, cell.ErrRefused)"}},
		Why:   "The lease is in the register, and whoever took it believes that it is not.",
		Test:  worlds("L[134]", "20000"),
	},
}

// cellTest is one of package cell's tests, which must fail.
func cellTest(name string) *Test {
	return &Test{Args: []string{"./cell", "-run", name + "$"}, Says: "FAIL: " + name}
}
