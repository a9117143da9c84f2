package mutants

// publishing get wrong what an answer of the object store means.
var publishing = []Mutant{
	{
		Name:   "published-without-a-condition",
		Edits:  []Edit{{"bucket/publish.go", "	c := Condition{IfAbsent: true}\n	if o.exists {\n		c = Condition{IfMatch: o.pinned.ETag}\n	}\n", "	var c Condition\n"}},
		Why:    "A worker that stood still writes its older result over a newer one.",
		From:   "the published archive of a stream: listing, then writing",
		Budget: 3000,
	},
	{
		Name:   "a-time-out-of-the-store-taken-for-success",
		Edits:  []Edit{{"cell/write.go", "		case answer == nil:\n", "		case answer == nil, errors.Is(answer, ErrUnclear):\n"}},
		Why:    "A write without an answer may never have been made.",
		Budget: 1000,
	},
	{
		Name:   "412-taken-for-done",
		Edits:  []Edit{{"bucket/publish.go", "	case refused || !o.unchanged(now, exists):\n", "	case refused:\n		return cell.Landed, nil\n	case !o.unchanged(now, exists):\n"}},
		Why:    "Another's output stands there, made from another version of the input.",
		Budget: 5000,
	},
	{
		Name:   "every-publish-sure",
		Edits:  []Edit{{"bucket/publish.go", "	r.Sure = w.Unanswered == 0\n", "	r.Sure = true\n"}},
		Why:    "A write without an answer that lands later is not looked for.",
		Budget: 20_000,
	},
	{
		Name:   "a-success-after-a-lost-answer-taken-for-sure",
		Edits:  []Edit{{"cell/write.go", "		case answer == nil:\n", "		case answer == nil:\n			w.Unanswered = 0\n"}},
		Why:    "The lost copy still carries its condition, which holds again once the pinned state comes back.",
		Budget: 30_000,
	},
	{
		Name:   "a-refused-copy-taken-for-a-loose-one",
		Edits:  []Edit{{"cell/write.go", "	case found && !refused:\n		w.Unanswered -= w.Resolves\n", "	case found:\n		w.Unanswered = max(0, w.Unanswered-w.Resolves)\n"}},
		Why:    "A refusal and one's own nonce say that some copy has landed, and not which. The one that is still on its way is forgotten.",
		From:   "Pawl itself, before it was simulated",
		Budget: 300_000,
	},
	{
		Name:  "one-nonce-for-all-publishes",
		Edits: []Edit{{"worker/attempt.go", "Nonce: x.Nonce(),\n", "Nonce: fmt.Sprint(x.Claim.Fence),\n"}},
		Why:   "An attempt that starts over takes its own earlier write, of what it had read then, for the later one.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestALateCopyDoesNotPassForTheNextPublish$"}, Says: "FAIL: TestALateCopyDoesNotPassForTheNextPublish"},
	},
	{
		Name:  "unchanged-by-bytes-alone",
		Edits: []Edit{{"bucket/publish.go", "		now.ModTime.Equal(p.ModTime) && now.Metadata", "		now.Metadata"}},
		Why:   "An object of the same bytes, written since by somebody who copies metadata, looks like the one that was pinned.",
		Test:  &Test{Args: []string{"./bucket", "-run", "TestPublishOverRewrittenBytes$"}, Says: "FAIL: TestPublishOverRewrittenBytes"},
	},
}
