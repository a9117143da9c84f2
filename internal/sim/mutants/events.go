package mutants

// events get wrong which events are news.
var events = []Mutant{
	{
		Name: "an-older-event-wins",
		Edits: []Edit{{"ledger/observe.go", `		case c < 0:
			return r, Stale
		case c == 0:`, `		case c == 0:`}},
		Why:    "A worker that reads an event, waits for its turn and then writes without comparing again puts an older state over a newer one.",
		From:   "the published lock in DynamoDB, whose condition forgets the sequencer",
		Budget: 1000,
	},
	{
		Name:   "a-row-for-one-key-of-all-buckets",
		Edits:  []Edit{{"worker/pipeline.go", `Bucket: o.Bucket, Key: o.Key}`, `Key: o.Key}`}},
		Why:    "Objects of equal keys in two buckets share a row: one's events are stale or duplicates of the other's.",
		From:   "the published lock in DynamoDB, whose item is named by the key alone",
		Budget: 100,
	},
	{
		Name: "keys-as-they-are-written",
		Edits: []Edit{{"event/records.go", `if d != AWS && d != MinIO {
		return key, nil`, `if len(d) >= 0 {
		return key, nil`}},
		Why:  "AWS and MinIO encode keys as in a form. Not decoded, an object with a space in its name is not found, and taken for removed.",
		From: "the published lock in DynamoDB, and most first attempts",
		Test: &Test{Args: []string{"./event", "-run", "TestKeyIsDecodedExactlyOnce"}, Says: "FAIL: TestKeyIsDecodedExactlyOnce"},
	},
	{
		Name:   "sequencers-compared-unpadded",
		Edits:  []Edit{{"event/sequencer.go", `return strings.Compare(s.canon, t.canon) }`, `return len(s.canon) - len(t.canon) + strings.Compare(s.canon, t.canon) }`}},
		Why:    "Sequencers differ in length. Compared as numbers, or with the shorter padded on the left, a newer one can look older.",
		Budget: 2000,
	},
	{
		Name: "untrusted-events-dropped-as-duplicates",
		Edits: []Edit{{"ledger/observe.go", `		fresh = at.After(r.EventTime)
		r.Want.Generation++`, `		if fresh = at.After(r.EventTime); !fresh {
			return r, Duplicate
		}
		r.Want.Generation++`}},
		Why:    "Times of events have a resolution of a second on some stores. Dropped by their times, the second of two changes within one second is lost.",
		Budget: 10_000,
	},
	{
		Name: "fresh-attempts-for-any-copy",
		Edits: []Edit{{"ledger/observe.go", `fresh = at.After(r.EventTime)
`, `fresh = true
`}},
		Why:    "Two copies of a poisonous event, redelivered in turn, keep each other alive for ever.",
		Budget: 5000,
	},
	{
		Name: "a-death-undone-within-its-second",
		Edits: []Edit{
			{"ledger/observe.go", "fresh = at.After(r.EventTime)\n", "fresh = at.After(r.EventTime) || r.revives(e)\n"},
			{"ledger/observe.go", "// maxAhead is how far", `func (r *Row) revives(e *event.Event) bool {
	if !r.Dead || !e.Time.Equal(r.EventTime) {
		return false
	}
	return e.Kind != r.Want.Kind || e.Kind == event.Created && e.ETag != "" && e.ETag != r.Want.Identity.ETag
}

// maxAhead is how far`},
		},
		Why:    "A bad upload and its correction may share a second, so an event of that second with another content looks like news. Two bad ones, redelivered in turn, then revive each other for ever.",
		From:   "Pawl itself, before it was simulated",
		Budget: 60_000,
	},
	{
		Name: "no-check-for-duplicates",
		Edits: []Edit{{"ledger/observe.go", `		case c == 0:
			return r, Duplicate
		}
		r.Want, newest, r.Disorder = Version{Sequencer: e.Sequencer}, true, 0`, `		case c == 0:
			r.Want.Generation++
		default:
			r.Want, newest = Version{Sequencer: e.Sequencer}, true
		}`}},
		Why:    "Every copy of an event is news: its effect happens again, and what died of it comes back to life.",
		From:   "the published archive of a stream, whose check switches itself off",
		Budget: 2000,
	},
	{
		Name: "a-removal-of-nothing-dropped",
		Edits: []Edit{{"ledger/observe.go", `	fresh, at := true, believed(e.Time, now)
`, `	fresh, at := true, believed(e.Time, now)
	if e.Kind == event.Removed && r.CreatedAt.IsZero() {
		return r, Stale
	}
`}},
		Why:    "A removal overtakes the creation that it removes. With nothing to remove it is dropped, and the creation makes the object anew.",
		From:   "the published index of files, from which a removal deletes what is not there yet",
		Budget: 5000,
	},
	{
		Name: "acknowledged-before-the-ledger-answers",
		Edits: []Edit{
			{"engine/deliver.go", "	if d.open == 0 {\n		e.emit(d.answer)\n		e.count", "	e.emit(d.answer)\n	if d.open == 0 {\n		e.count"},
			{"engine/deliver.go", "d.open == 0 {\n		e.emit(d.answer)\n		delete", "d.open == 0 {\n		delete"},
		},
		Why:    "A worker that ends between the acknowledgement and the ledger's answer takes the event with it.",
		Budget: 1000,
	},
	{
		Name:   "duplicates-taken-for-settled",
		Edits:  []Edit{{"engine/deliver.go", `o.verdict != ledger.Stale && !en.row`, `o.verdict == ledger.Raised && !en.row`}},
		Why:    "That an event was heard of does not mean that it was acted on: its first copy may have ended with its worker. Where the message is what brings the next attempt, its last copy is gone.",
		From:   "the published archive of a stream: older than the last range does not mean stored",
		Budget: 5000,
	},
	{
		Name:   "acknowledged-before-it-is-settled",
		Edits:  []Edit{{"engine/deliver.go", `if e.cfg.AckSettled && `, `if e.cfg.AckSettled && e.draining && `}},
		Why:    "Where nobody sweeps, the message is all that brings the next attempt. Acknowledged when the ledger has the event, it is gone when the attempt fails.",
		Budget: 2000,
	},
	{
		Name: "messages-of-the-dead-kept",
		Edits: []Edit{
			{"engine/deliver.go", "	if en.row.Settled() || en.row.Dead {\n		for", "	if en.row.Settled() {\n		for"},
			{"engine/deliver.go", "!en.row.Settled() && !en.row.Dead {", "!en.row.Settled() {"},
			{"engine/deliver.go", "o.verdict != ledger.Stale && !en", "!en"},
		},
		Why:    "A message whose object is dead comes again for ever, for nobody will settle it.",
		Budget: 5000,
	},
	{
		Name:  "forgotten-when-it-backs-off",
		Edits: []Edit{{"engine/own.go", "		e.own.left.Add(en.key, e.own.looks)\n", "		_ = en\n"}},
		Why:   "A program that ends when its messages are done with ends while an object of theirs backs off.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestRestWaitsForItsOwnObjectsAlone$"}, Says: "FAIL: TestRestWaitsForItsOwnObjectsAlone"},
	},
	{
		Name:   "what-others-settle-not-looked-for",
		Edits:  []Edit{{"engine/own.go", "		return o.left.Len() > 0\n", "		return false\n"}},
		Why:    "No sweep tells that another worker has settled an object. Whoever waits for it waits for ever.",
		Budget: 500,
	},
	{
		Name:  "an-old-look-believed",
		Edits: []Edit{{"engine/own.go", "!left || looks == e.own.looks", "!left || looks < 0"}},
		Why:   "A look is on its way while the object changes and fails: that it was settled then says nothing of now.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestTranscripts/32_left"}, Says: "FAIL: TestTranscripts/32_left"},
	},
	{
		Name:  "a-forged-sequencer-goes-unnoticed",
		Edits: []Edit{{"ledger/observe.go", "case c < 0 && at.After(r.EventTime.Add(r.disorderAfter())) && !ofVersion(e):", "case false:"}},
		Why:   "One forged event with the largest sequencer silences its object for ever, and nobody is told.",
		Test:  &Test{Args: []string{"./ledger", "-run", "TestTranscripts/disorder"}, Says: "FAIL: TestTranscripts/disorder"},
	},
	{
		Name:  "a-reset-that-a-cache-never-hears-of",
		Edits: []Edit{{"engine/fold.go", " || o.verdict == ledger.Disordered", ""}},
		Why:   "A worker that remembers the row of before an operator's reset goes on taking all that is new for stale.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestTranscripts/34_disorder$"}, Says: "FAIL: TestTranscripts/34_disorder"},
	},
	{
		Name:  "a-reset-that-counts-from-one",
		Edits: []Edit{{"ledger/operate.go", "max(uint64(max(now.UnixMilli(), 0)), r.Want.Generation+2)", "r.Want.Generation + 2"}},
		Why:   "The second reset gives an effect the order, and so the idempotency key, of the first: its receiver takes it for done.",
		Test:  &Test{Args: []string{"./ledger", "-run", "TestTranscripts/disorder"}, Says: "FAIL: TestTranscripts/disorder"},
	},
}
