package mutants

// deciding get wrong whether there is anything to do, and in which order it is
// found out.
var deciding = []Mutant{
	{
		Name:   "skipped-after-a-crash",
		Edits:  []Edit{{"ledger/decide.go", "	case a.Forced:\n		return true\n	case out == nil:", "	case a.Forced:\n		return true\n	case a.TakenOver:\n		return false\n	case out == nil:"}},
		Why:    "The sequencer is that of an attempt which began and never ended. Taken for a repetition, it is passed over.",
		From:   "the published lock in DynamoDB, which refuses an equal sequencer after a crash",
		Budget: 1000,
	},
	{
		Name: "skipped-in-spite-of-doubt",
		Edits: []Edit{
			{"ledger/decide.go", "		return a.Doubt || !a.had(r)\n", "		return !a.had(r)\n"},
			{"ledger/decide.go", "case !a.Doubt && !a.Verifying:", "case !a.Verifying:"},
		},
		Why:    "An attempt that crashed after its effect left another state than the row says.",
		Budget: 20_000,
	},
	{
		Name:   "a-verification-that-asks-the-row",
		Edits:  []Edit{{"ledger/decide.go", "case !a.Doubt && !a.Verifying:", "case !a.Doubt:"}},
		Why:    "The row does not know what landed late. Only the output can tell what it was made from.",
		Budget: 20_000,
	},
	{
		Name:   "a-verification-that-compares-sequencers",
		Edits:  []Edit{{"ledger/decide.go", "	case r.Kind == event.Removed:\n		return out.Exists\n	}\n", "	case a.Verifying && !a.Doubt:\n		return a.Want.Compare(a.Have) != 0\n	case r.Kind == event.Removed:\n		return out.Exists\n	}\n"}},
		Why:    "The same by another way: nothing is newer, so nothing is done.",
		Budget: 20_000,
	},
	{
		Name:   "nothing-to-do-by-sequencer",
		Edits:  []Edit{{"ledger/decide.go", "	if r.ByEvent {\n		return a.Want.Compare(a.Have) == 0\n	}\n	return r.Kind", "	if r.ByEvent || r.Kind != event.Removed {\n		return a.Want.Compare(a.Have) == 0\n	}\n	return r.Kind"}},
		Why:    "An object may change between its event and the look at it. What was acted on then is acted on again when its own event comes.",
		Budget: 2000,
	},
	{
		Name:   "not-found-believed-at-once",
		Edits:  []Edit{{"ledger/decide.go", "	return min(newest.Add(consistencyWindow).Sub(now), consistencyWindow)\n", "	return 0\n"}},
		Why:    "A store that is eventually consistent hides an object for a while: taken for removed, it is not looked for again.",
		Budget: 5000,
	},
	{
		Name:   "pinned-after-the-read",
		Edits:  []Edit{{"worker/attempt.go", "	res, err := x.pinned.Publish(", "	if _, err := x.pin(ctx); err != nil {\n		return err\n	}\n	res, err := x.pinned.Publish("}},
		Why:    "A worker that stands still in between pins a newer result, and replaces it by its older one.",
		Budget: 10_000,
	},
	{
		Name:   "event-order-without-a-look-at-the-fence",
		Edits:  []Edit{{"worker/attempt.go", "	if x.pinned != nil {\n		if err := x.stillHolds(ctx)", "	if x.pinned != nil && x.Claim.Fence < 0 {\n		if err := x.stillHolds(ctx)"}},
		Why:    "Without a read there is nothing that the pin comes before: a worker that stood still between claim and pin replaces a newer result.",
		Budget: 60_000,
	},
	{
		Name:   "a-repetition-writes-what-is-left",
		Edits:  []Edit{{"worker/attempt.go", "!again && !x.Claim.MustAct(&read, out) {\n		return false, nil\n", "!again && !x.Claim.MustAct(&read, out) {\n		if x.pinned != nil {\n			return true, x.remove(ctx)\n		}\n		return false, nil\n"}},
		Why:    "After what was stored already is left out nothing is left. Written, it replaces the good output.",
		From:   "the published archive of a stream, which writes an empty list over the stored batch",
		Budget: 500,
	},
	{
		Name:   "an-attempt-that-forgets-what-it-did",
		Edits:  []Edit{{"worker/attempt.go", "again := out == nil && x.began; !again", "again := false; !again"}},
		Why:    "The handler had its effect, read its input again, and found it changed. Where the attempt now finds what the row says was had, nobody undoes the effect.",
		Budget: 20_000,
	},
	{
		Name:   "a-verification-that-acts-again",
		Edits:  []Edit{{"ledger/decide.go", "return a.Doubt || !a.had(r)\n", "return a.Doubt || a.Verifying || !a.had(r)\n"}},
		Why:    "Elsewhere there is nothing to look at: each verification would have the effect again.",
		Budget: 2000,
	},
	{
		Name:   "acts-twice",
		Edits:  []Edit{{"worker/attempt.go", "	if err != nil || x.pinned == nil {\n		return err", "	if err == nil && x.pinned == nil {\n		err = x.Pipeline.Handler.Handle(ctx, t)\n	}\n	if err != nil || x.pinned == nil {\n		return err"}},
		Why:    "A repeat that nobody asked for, within one attempt.",
		Budget: 500,
	},
	{
		Name:   "a-neighbour-of-poison",
		Edits:  []Edit{{"engine/lane.go", "return row.Held() && 2*row.Attempts >= e.cfg.Policy.Attempts", "return false"}},
		Why:    "What is claimed together with an object that kills its process is taken over together with it, again and again, and in the end it is dead as well.",
		Budget: 100_000,
	},
	{
		Name:  "an-answer-that-grew-old",
		Edits: []Edit{{"worker/attempt.go", "	read, err := x.read(ctx)\n", "	read, err := x.read(ctx)\n	asked = x.Now()\n"}},
		Why:   "Whoever sleeps with \"not found\" in his hands finds the object old enough, by now, to be believed removed.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestALateNotFoundIsAsYoungAsItsQuestion$"}, Says: "FAIL: TestALateNotFoundIsAsYoungAsItsQuestion"},
	},
	{
		Name:   "a-panic-let-through",
		Edits:  []Edit{{"worker/attempt.go", "	defer func() {\n		if p := recover(); p != nil {\n			err =", "	defer func() {\n		if p := error(nil); p != nil {\n			err ="}},
		Why:    "One poisonous object ends the process, and every other attempt in it.",
		Budget: 1000,
	},
	{
		Name:  "only-the-last-try-is-told",
		Edits: []Edit{{"worker/attempt.go", "	x.ending.Unsure = x.ending.Unsure || r.Sent && !r.Sure\n", "	x.ending.Unsure = r.Sent && !r.Sure\n"}},
		Why:   "An attempt that started over, because its output had moved, has sent twice. What it does not know of the first write is forgotten.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestAnUnsureMoveIsVerified$"}, Says: "FAIL: TestAnUnsureMoveIsVerified"},
	},
	{
		Name:  "only-the-last-sending-is-told",
		Edits: []Edit{{"worker/attempt.go", "	x.ending.Sent = x.ending.Sent || r.Sent\n", "	x.ending.Sent = r.Sent\n"}},
		Why:   "The same of whether anything was sent at all.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestAFailureAfterAMoveLeavesDoubt$"}, Says: "FAIL: TestAFailureAfterAMoveLeavesDoubt"},
	},
	{
		Name:  "a-digest-without-the-content-type",
		Edits: []Edit{{"worker/attempt.go", `	fmt.Fprintf(h, "%q", i.ContentType)` + "\n", ""}},
		Why:   "The same bytes were written anew with another content type: that is taken for a duplicate.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestAChangeOfTheContentTypeIsAChange$"}, Says: "FAIL: TestAChangeOfTheContentTypeIsAChange"},
	},
	{
		Name:  "a-delete-marker-taken-for-a-denial",
		Edits: []Edit{{"bucket/s3bucket/read.go", "== http.StatusMethodNotAllowed {", "== -http.StatusMethodNotAllowed {"}},
		Why:   "The version that was asked for is a removal. Its output stays, and the object dies.",
		Test:  &Test{Args: []string{"./bucket/s3bucket", "-run", "TestDeleteMarkerOfAVersion$"}, Says: "FAIL: TestDeleteMarkerOfAVersion"},
	},
	{
		Name:  "an-outage-counted",
		Edits: []Edit{{"worker/attempt.go", "return isOutage(err) || !x.began", "return !x.began"}},
		Why:   "Credentials expire, or descriptors run out, for some minutes: every object that changes meanwhile dies of it.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestAnOutageOfTenMinutes$"}, Says: "FAIL: TestAnOutageOfTenMinutes"},
	},
	{
		Name:  "an-edited-match",
		Edits: []Edit{{"worker/attempt.go", "if !x.Pipeline.Match(x.ref()) {", "if false {"}},
		Why:   "What was heard of before the configuration was edited is written where no check foresaw it: into a loop, say.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestWhatIsNoLongerMatchedRests$"}, Says: "FAIL: TestWhatIsNoLongerMatchedRests"},
	},
	{
		Name:  "a-rest-that-kills",
		Edits: []Edit{{"worker/attempt.go", "After: rest, Uncounted: true", "After: rest"}},
		Why:   "What rests is looked at every hour, and dies of that.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestWhatIsNoLongerMatchedRests$"}, Says: "FAIL: TestWhatIsNoLongerMatchedRests"},
	},
	{
		Name:  "a-quarantine-that-stops-all-at-once",
		Edits: []Edit{{"engine/lane.go", "en != nil && l.running == 0 && e.quarantined", "en != nil && e.quarantined"}},
		Why:   "What is to run alone waits for a slow object of its own pipeline, and all other pipelines wait with it.",
		Test:  &Test{Args: []string{"./engine", "-run", "TestQuarantineWaitsForItsOwnPipelineFirst$"}, Says: "FAIL: TestQuarantineWaitsForItsOwnPipelineFirst"},
	},
	{
		Name:  "room-in-memory-for-whoever-comes-first",
		Edits: []Edit{{"worker/worker.go", "return max(1, cfg.Backlog/(2*len(cfg.Pipelines)))", "return cfg.Backlog"}},
		Why:   "Over a ledger in memory deliveries wait for their objects. Those of one slow pipeline take all the room there is.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestASlowPipelineLeavesRoomForOthers$"}, Says: "FAIL: TestASlowPipelineLeavesRoomForOthers"},
	},
}
