package mutants

// locks get wrong who holds a lock on an object store, and what became of an
// update. The worlds of package lock notice.
var locks = []Mutant{
	{
		Name: "a-lock-deleted-on-release",
		Edits: []Edit{
			{"lock/hold.go", "		w := m.place.write(h.at, h.at.rec.released(", "		if err := m.store.Delete(ctx, m.ref, bucket.Condition{IfMatch: h.at.etag}); err == nil {\n			return nil\n		}\n		w := m.place.write(h.at, h.at.rec.released("},
			{"lock/hold.go", "	\"github.com/pawlhq/pawl/cell\"\n)", "	\"github.com/pawlhq/pawl/bucket\"\n	\"github.com/pawlhq/pawl/cell\"\n)"},
		},
		Why:  "With the object goes the token. The next holder's is whatever its clock makes of it.",
		From: "the published lock object on S3",
		Test: worlds("L2", "5000"),
	},
	{
		Name:  "a-lock-compared-by-wall-clock",
		Edits: []Edit{{"lock/mutex.go", "return m.watch.left(&now.rec, m.clock.Now())", "return now.rec.Since.Add(now.rec.ttl()).Sub(m.clock.Now())"}},
		Why:   "A waiter whose clock is ahead takes the lock from its holder, and one whose clock is behind waits for the dead.",
		From:  "lock objects that say when they expire",
		Test:  worlds("L[14]", "5000"),
	},
	{
		Name:  "a-lock-without-nonces",
		Edits: []Edit{{"lock/classify.go", "	case now.exists && now.rec.Nonce == nonce:\n", "	case now.exists && now.rec.Nonce != base.rec.Nonce:\n"}},
		Why:   "After a time-out nobody can tell whose write it was that landed: both take it for theirs.",
		Test:  worlds("L1", "5000"),
	},
	{
		Name:  "a-lock-held-from-the-answer-on",
		Edits: []Edit{{"lock/write.go", "		w.pace.Store(", "		w.sent = now\n		w.pace.Store("}},
		Why:   "The waiters count from when the write landed. Its answer may come much later.",
		Test:  worlds("L1", "20000"),
	},
	{
		Name:  "a-lock-held-from-the-last-copy-on",
		Edits: []Edit{{"lock/write.go", "	fate, err := w.sending.Run(ctx)\n", "	fate, err := w.sending.Run(ctx)\n	if w.sending.Unanswered > 0 {\n		w.sent = w.clock.Now()\n	}\n"}},
		Why:   "It may be the first copy that landed.",
		Test:  worlds("L1", "20000"),
	},
	{
		Name:  "a-lock-held-from-a-looks-answer-on",
		Edits: []Edit{{"lock/write.go", "w.base, w.sent = w.found.now, asked", "asked = w.found.seen\n		w.base, w.sent = w.found.now, asked"}},
		Why:   "The look shows that nothing has landed. While its answer is on the way, the first copy does.",
		Test:  lockTest("TestALeaseThatLandsWhileOneLooks"),
	},
	{
		Name:  "a-lock-that-does-not-run-out-in-sleep",
		Edits: []Edit{{"lock/clock.go", "return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))", "return now.Sub(since)"}},
		Why:   "The monotonic clock stands still while the machine sleeps. It wakes, and goes on under a lease that is another's.",
		Test:  lockTest("TestHeld"),
	},
	{
		Name:  "a-lock-that-goes-by-the-wall",
		Edits: []Edit{{"lock/clock.go", "return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))", "return now.Round(0).Sub(since.Round(0))"}},
		Why:   "The wall clock is put back by an hour, and the lease is held for an hour too long.",
		Test:  lockTest("TestHeld"),
	},
	{
		Name:  "a-lock-that-409-refuses",
		Edits: []Edit{{"lock/write.go", "	fate := classify(w.found.now, w.base, w.next.Nonce)\n", "	fate := classify(w.found.now, w.base, w.next.Nonce)\n	if errors.Is(answer, cell.ErrConflict) {\n		fate = cell.Lost\n	}\n"}},
		Why:   "It may be the answer to the second copy of what has landed: one waits for oneself.",
		Test:  worlds("L3", "5000"),
	},
	{
		Name:  "a-lock-kept-by-the-dead",
		Edits: []Edit{{"lock/mutex.go", "return m.watch.left(&now.rec, m.clock.Now())", "return MaxTTL"}},
		Why:   "A holder that crashed locks everybody out.",
		From:  "the published lock object on S3",
		Test:  worlds("L4", "5000"),
	},
	{
		Name:  "a-lock-taken-over-by-clocks-of-one-rate",
		Edits: []Edit{{"lock/mutex.go", "return r.ttl() + r.ttl()*rate/100 - now.Sub(w.since)", "return r.ttl() - now.Sub(w.since)"}},
		Why:   "The waiter's clock runs faster than the holder's, and the lease is over for the one before it is for the other.",
		Test:  worlds("L1", "60000"),
	},
	{
		Name:  "a-lock-without-a-token",
		Edits: []Edit{{"lock/record.go", "	n.Token = r.Token + 1\n	return n\n}\n\n// renewed", "	n.Token = r.Token\n	return n\n}\n\n// renewed"}},
		Why:   "A holder that stood still cannot be told from the one after it.",
		From:  "the published lock object on S3",
		Test:  worlds("L2", "1000"),
	},
	{
		Name:  "a-lock-written-without-a-condition",
		Edits: []Edit{{"bucket/cell.go", "	cond := Condition{IfMatch: version, IfAbsent: version == \"\"}\n", "	var cond Condition\n"}},
		Why:   "Two see that it is free, and both write.",
		From:  "stores that ignore preconditions",
		Test:  worlds("L1", "1000"),
	},
	{
		Name:  "a-lock-that-forgets-what-it-sent",
		Edits: []Edit{{"lock/mutex.go", "	m.disown(w.next.Nonce)\n	ctx, stop", "	ctx, stop"}},
		Why:   "Whoever gave up while a write was on its way waits for itself the next time.",
		Test:  worlds("L3", "60000"),
	},
	{
		Name:  "a-lock-handed-on-and-not-let-go",
		Edits: []Edit{{"lock/turns.go", "		h.disown()\n", ""}},
		Why:   "The goroutine to which it is left waits for its own process.",
		Test:  worlds("L3", "5000"),
	},
	{
		Name:  "a-forced-release-without-a-token",
		Edits: []Edit{{"lock/record.go", "	n.Token++\n", ""}},
		Why:   "What its holder does until it notices cannot be refused.",
		Test:  worlds("L1", "60000"),
	},
	{
		Name:  "a-reader-that-does-not-look-back",
		Edits: []Edit{{"lock/rwmutex.go", "	now, _, err := m.gate.read(ctx)\n	if err == nil && (!now", "	now, err := version{}, error(nil)\n	if err == nil && (!now"}},
		Why:   "Between its look at the gate and its own lease a writer came, and saw no reader.",
		Test:  worlds("L1", "20000"),
	},
	{
		Name:  "a-writer-behind-a-lapsed-gate",
		Edits: []Edit{{"lock/rwmutex.go", "case now == nil && h.left(m.gate.clock.Now()) <= 0:", "case false:"}},
		Why:   "The listing of the readers takes longer than the gate's lease: another writer is inside by then.",
		Test:  lockTest("TestAWriterWhoseGateLapses"),
	},
	{
		Name:  "a-gate-not-renewed-meanwhile",
		Edits: []Edit{{"lock/rwmutex.go", "m.readers.list(ctx, gate.tended)", "m.readers.list(ctx, func(context.Context) error { return nil })"}},
		Why:   "The readers are so many that the gate's lease is over before all were looked at, and the writer begins again.",
		Test:  lockTest("TestAWriterRenewsItsGate"),
	},
	{
		Name:  "a-reader-left-to-its-fate",
		Edits: []Edit{{"lock/rwmutex.go", "one.mutex.expire(ctx, &one.now, &one.seen)", "one.mutex.claimable(one.now, one.seen), error(nil)"}},
		Why:   "A reader's lease that is over was renewed at the last moment, or will be: it must be ended before a writer goes on.",
		Test:  lockTest("TestAReaderThatSleptCannotRenew"),
	},
	{
		Name:  "a-semaphore-that-tries-one-slot",
		Edits: []Edit{{"lock/slots.go", "len(fresh) < maxFresh", "len(fresh) < 1"}},
		Why:   "Of many who try at once most are refused, while there are enough slots for all.",
		Test:  lockTest("TestManyTryAtOnce"),
	},
	{
		Name:  "a-semaphore-of-any-limit",
		Edits: []Edit{{"lock/slots.go", " || r.State != Held || r.Limit == s.holder.Limit {", " || r.State != Held || r.Limit != s.holder.Limit || r.Limit == s.holder.Limit {"}},
		Why:   "One who was told another number than the others enters beside them.",
		Test:  lockTest("TestSemaphoresOfDifferentLimits"),
	},
	{
		Name:  "a-ticket-that-counts-as-removed",
		Edits: []Edit{{"lock/fair.go", "	return err == nil, nil\n", "	return true, nil\n"}},
		Why:   "The waiter whose ticket it is renews it, and is overtaken.",
		Test:  lockTest("TestATicketThatMayBeThere"),
	},
	{
		Name:  "a-ticket-in-the-way-of-its-waiter",
		Edits: []Edit{{"lock/fair.go", "		if !t.wrote(now) || now.rec.State != Held {", "		if len(now.rec.Nonce) >= 0 {"}},
		Why:   "After an outage a waiter takes its own ticket for another's, draws the next, and waits behind itself.",
		Test:  lockTest("TestATicketAfterAnOutage"),
	},
	{
		Name:  "a-lease-that-sleeps-in-a-renewal",
		Edits: []Edit{{"lock/lease.go", "			l.watch(renewals, m, ttl)\n", "			_, _ = m, ttl\n"}},
		Why:   "The machine was suspended while a renewal waited for its answer, whose time-out was suspended, too. Others have entered when it wakes.",
		Test:  lockTest("TestASleepDuringARenewal"),
	},
	{
		Name:  "a-lock-of-a-store-without-etags",
		Edits: []Edit{{"bucket/cell.go", "	if err == nil && info.ETag == \"\" {\n", "	if err == nil && len(info.ETag) < 0 {\n"}},
		Why:   "A proxy takes the ETags away, and a write on the condition of none is one without a condition.",
		Test:  lockTest("TestReadsWithoutETags"),
	},
	{
		Name:  "a-leader-that-stands-once",
		Edits: []Edit{{"lock/lead.go", "		case !lost:\n", "		default:\n"}, {"lock/lead.go", "		lost, err := m.term", "		_, err = m.term"}},
		Why:   "When each has lost the lease once nobody leads any more.",
		Test:  lockTest("TestLeadAgain"),
	},
	{
		Name:  "an-update-without-its-lineage",
		Edits: []Edit{{"lock/lineage.go", "	case slices.Contains(now.ids, id):\n		return cell.Superseded, true\n", ""}},
		Why:   "The update landed and its answer was lost; another has updated since. Not found as the newest, it is applied again.",
		Test:  worlds("L6", "5000"),
	},
	{
		Name:  "an-update-lost-beyond-its-lineage",
		Edits: []Edit{{"lock/lineage.go", "	return cell.Lost, place+min(base.count, 1) < int64(len(now.ids))\n", "	return cell.Lost, true\n"}, {"lock/lineage.go", "maxIDs, minIDs = 48, 8", "maxIDs, minIDs = 4, 1"}},
		Why:   "The same if so many have updated since that its id is gone.",
		Test:  worlds("L6", "20000"),
	},
	{
		Name:  "an-update-refused-taken-for-lost",
		Edits: []Edit{{"lock/update.go", "		f, known := judge(", "		if errors.Is(answer, bucket.ErrPrecondition) {\n			return cell.Lost, nil\n		}\n		f, known := judge("}},
		Why:   "412 may be the answer to the second copy of what has landed.",
		From:  "the published update by If-Match",
		Test:  worlds("L6", "5000"),
	},
	{
		Name:  "an-update-of-the-same-bytes",
		Edits: []Edit{{"lock/updatejson.go", "	}, respelled, c)\n", "	}, nil, c)\n"}},
		Why:   "A new holder raises the fence, the bytes stay, and so does their ETag: the write of an older holder, on its way, finds its condition true.",
		Test:  lockTest("TestAFenceOverTheSameValue"),
	},
	{
		Name:  "an-update-without-a-fence",
		Edits: []Edit{{"lock/update.go", "	case u.config.Fence > 0 && now.fence > u.config.Fence:", "	case u.config.Fence < 0:"}},
		Why:   "A holder that stood still beyond its lease writes over what the next one has written.",
		From:  "the published lock object on S3, without a token against a paused holder",
		Test:  worlds("L2", "60000"),
	},
}

// worlds is a run of package lock's simulated worlds, in which an invariant must
// be violated.
func worlds(invariant, histories string) *Test {
	return &Test{Args: []string{"./lock", "-run", "TestWorlds$", "-histories", histories}, Says: invariant + ": "}
}

// lockTest is one of package lock's tests, which must fail.
func lockTest(name string) *Test {
	return &Test{Args: []string{"./lock", "-run", name + "$"}, Says: "FAIL: " + name}
}
