package mutants

// archives get wrong what an archive of a stream lives by. The worlds of package
// archive notice.
var archives = []Mutant{
	{
		Name:  "an-archive-that-sends-before-it-announces",
		Edits: []Edit{{"archive/send.go", "	signed := s.Now()\n	if err := s.write(ctx, next)", "	for i := range parcels {\n		if err := s.send(ctx, &parcels[i], s.Now()); err != nil {\n			return err\n		}\n	}\n	signed := s.Now()\n	if err := s.write(ctx, next)"}},
		Why:   "The next owner makes other objects of the same records, and nothing tells it of those that are there.",
		From:  "connectors that name objects by what they hold",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-that-commits-before-it-sends",
		Edits: []Edit{{"archive/send.go", "	signed := s.Now()\n	if err := s.write(ctx, next)", "	signed := s.Now()\n	next = next.Commit()\n	if err := s.write(ctx, next)"}},
		Why:   "A crash before the PUT leaves records that everybody takes for stored.",
		Test:  archived("A[16]"),
	},
	{
		Name: "an-archive-that-sums-up-bytes",
		Edits: []Edit{
			{"archive/send.go", "		parcels[i], intent.Objects[i] = parcel{o, body}, o", "		o.Digest = fmt.Sprintf(\"%x\", body)\n		parcels[i], intent.Objects[i] = parcel{o, body}, o"},
			{"archive/replay.go", "	if got := s.digest(&o, entries); got != o.Digest {", "	if bytes, err := s.pack(&o, entries); err != nil || fmt.Sprintf(\"%x\", bytes) != o.Digest {"},
		},
		Why:  "Another version of the encoder writes other bytes of the same records: the shard stands still for ever.",
		Test: archived("A[45]"),
	},
	{
		Name:  "an-archive-replayed-in-own-boundaries",
		Edits: []Edit{{"archive/progress.go", "	p.Owner, p.Fence = owner, fence\n", "	p.Owner, p.Fence, p.Intent = owner, fence, nil\n"}},
		Why:   "The owner before may have stored its objects: the new ones overlap with them.",
		From:  "the Kinesis connectors, which cut batches anew after a retry",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-replayed-in-own-format",
		Edits: []Edit{{"archive/replay.go", "	o := s.progress.Intent.Objects[i]\n	stored", "	o := s.progress.Intent.Objects[i]\n	if !o.gap() {\n		o.Format = s.Format\n		o.Key = Name{Minute: minute(o.Arrival), Shard: s.ID, Range: o.Range, Format: o.Format}.Key(s.Prefix)\n	}\n	stored"}},
		Why:   "The same records are stored under two keys.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-listed-by-its-first-page",
		Edits: []Edit{{"archive/recovery.go", "		all = append(all, Stored{", "		if len(all) == 2 {\n			break\n		}\n		all = append(all, Stored{"}},
		Why:   "What is on the other pages is stored again.",
		From:  "the published de-duplication of Kinesis records by listing S3",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-of-children-before-parents",
		Edits: []Edit{{"archive/recovery.go", "		if (listed || known) && p.State != Finished {", "		if (listed || known) && p.State == \"\" && false {"}},
		Why:   "Records of a key are stored before older ones of the same key.",
		Test:  archived("A6"),
	},
	{
		Name:  "an-archive-whose-owner-has-no-fence",
		Edits: []Edit{{"archive/shard.go", "	version, err := s.replace(ctx, s.cell, s.version, encodeJSON(next), next.Nonce)\n", "	version, err := s.replace(ctx, s.cell, s.version, encodeJSON(next), next.Nonce)\n	if errors.Is(err, ErrStale) {\n		var v cell.Value\n		if v, err = s.read(ctx, s.cell); err == nil {\n			version, err = s.replace(ctx, s.cell, v.Version, encodeJSON(next), next.Nonce)\n		}\n	}\n"}},
		Why:   "An owner that slept goes on from where it was, in front of what its successor has stored.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-without-an-anchor",
		Edits: []Edit{{"archive/tail.go", "		if t.waiting && (t.anchor != \"\" || t.aged(t.since)) {", "		if t.waiting && t.aged(t.since) && t.at == \"\" {"}},
		Why:   "A stream passes over expired records without a word, and so does the archive.",
		Test:  archived("A1"),
	},
	{
		Name:  "an-archive-that-reads-on-after-it-slept",
		Edits: []Edit{{"archive/tail.go", "	if !t.waiting && t.aged(t.placed) {\n		t.reader = nil", "	if false {\n		t.reader = nil"}},
		Why:   "Records expire between two pages while the process stands still.",
		Test:  archived("A1"),
	},
	{
		Name:  "an-archive-without-a-marker",
		Edits: []Edit{{"archive/claim.go", "	m, version, err := a.readMarker(ctx)\n	switch {\n	case err != nil:\n		return err\n", "	m, version, err := a.readMarker(ctx)\n	switch {\n	case err != nil || version == \"\":\n		return err\n"}},
		Why:   "A worker whose ledger was lost begins anew, and stores everything once more.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-recovered-without-looking",
		Edits: []Edit{{"archive/progress.go", "		if recovering {\n", "		if recovering && fence < 0 {\n"}},
		Why:   "What is stored already is stored again.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-recovered-without-a-wait",
		Edits: []Edit{{"archive/claim.go", "	if err := a.Sleep(ctx, RecoveryWait); err != nil {\n		return Claim{}, err\n	}\n	m =", "	if err := a.Sleep(ctx, time.Second); err != nil {\n		return Claim{}, err\n	}\n	m ="}},
		Why:   "A PUT of before lands behind the listing that should have seen it.",
		Test:  archiveTest("TestLateAfterRecovery"),
	},
	{
		Name:  "an-archive-that-drops-inside-a-batch",
		Edits: []Edit{{"archive/plan.go", "		if p.at.less(start) && !p.open.Empty() {\n			p.open.End, p.at = start, start\n		}\n		p.gap(start, \"\", now)\n		p.touch()", "		p.covered, start = p.covered[1:], \"\"\n		_ = start"}},
		Why:   "A batch around something that is stored covers it a second time.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-that-writes-over",
		Edits: []Edit{{"archive/send.go", "bucket.Condition{IfAbsent: true}, signed, signedFor)\n	return err", "bucket.Condition{}, signed, signedFor)\n	return err"}},
		Why:   "What was stored is replaced, by a zombie for one.",
		From:  "the published de-duplication of Kinesis records by listing S3",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-that-voids-nothing",
		Edits: []Edit{{"archive/replay.go", "		return s.void(ctx, &o)\n", "		return false, nil\n"}},
		Why:   "The late PUT of an object that was given up lands beside the gap.",
		Test:  archiveTest("TestLatePut"),
	},
	{
		Name:  "an-archive-that-takes-412-for-stored",
		Edits: []Edit{{"archive/send.go", "		stored, err := s.look(ctx, &p.Planned)\n", "		stored, err := errors.Is(answer, bucket.ErrPrecondition), error(nil)\n		if !stored {\n			stored, err = s.look(ctx, &p.Planned)\n		}\n"}},
		Why:   "Something else lies under the key. Its shard goes on without the records.",
		Test:  archiveTest("TestForeignObject"),
	},
	{
		Name:  "an-archive-that-asks-the-stream-before-the-registers",
		Edits: []Edit{{"archive/shards.go", "	var unfinished []string\n", "	all, err := a.Stream.Shards(ctx)\n	if err != nil {\n		return nil, err\n	}\n	var unfinished []string\n"}, {"archive/shards.go", "	all, err := a.Stream.Shards(ctx)\n	if err != nil {\n		return nil, err\n	}\n	listed", "	listed"}},
		Why:   "A shard that was made between the two is taken for one that the stream has forgotten, and finished before its end.",
		Test:  archiveTest("TestShardBetween"),
	},
	{
		Name: "an-archive-without-a-claim",
		Edits: []Edit{
			{"archive/claim.go", "	if c.ID == \"\" {\n		if err := a.checkFresh(ctx); err != nil {\n			return Claim{}, err\n		}\n", "	if m, _, _ := a.readMarker(ctx); m.ID == \"\" {\n"},
			{"archive/claim.go", "	case version == \"\" || m.Table != c.Table || m.Generation != c.Generation:", "	case version == \"\":"},
			{"archive/claim.go", "	now, _, err := a.readClaim(ctx)\n", "	now, err := c, error(nil)\n"},
		},
		Why:  "Workers over two ledgers store the same stream below the same prefix.",
		Test: archived("A2"),
	},
	{
		Name:  "an-archive-that-looks-at-the-claim-once",
		Edits: []Edit{{"archive/claim.go", "	now, _, err := a.readClaim(ctx)\n", "	now, err := c, error(nil)\n"}},
		Why:   "A worker over the ledger of before goes on beside those that came after the recovery.",
		Test:  archived("A2"),
	},
	{
		Name: "an-archive-of-minutes",
		Edits: []Edit{
			{"archive/plan.go", "	if minute(arrival) != minute(p.arrival) {\n		p.cut()\n	}\n", ""},
			{"archive/plan.go", "	p.done = append(p.done, p.open)\n	p.open = run{}\n", "	rest := p.open.entries\n	for len(rest) > 0 {\n		one, at := p.open, minute(rest[0].Arrival)\n		one.entries, one.arrival = nil, at\n		left := rest[:0:0]\n		for _, e := range rest {\n			if minute(e.Arrival) == at {\n				one.entries = append(one.entries, e)\n			} else {\n				left = append(left, e)\n			}\n		}\n		rest = left\n		one.Range = Range{one.entries[0].Number.before(), one.entries[len(one.entries)-1].Number}\n		p.done = append(p.done, one)\n	}\n	p.open = run{}\n"},
			{"archive/progress.go", "o.Empty() || at != \"\" && o.Start != at {", "o.Empty() {"},
		},
		Why:  "Arrivals are not in order, so the ranges of two minutes overlap, and none tells what is stored.",
		From: "the published de-duplication of Kinesis records by listing S3",
		Test: archived("A[24]"),
	},
	{
		Name:  "an-archive-that-cuts-aggregates",
		Edits: []Edit{{"archive/plan.go", "	arrival := latest(p.arrival, e.Arrival)\n", "	if len(e.Records) > 1 && !p.open.Empty() && p.at.less(e.Number.before()) {\n		half := e\n		half.Records, e.Records = e.Records[:1], e.Records[1:]\n		p.open.entries = append(p.open.entries, half)\n		p.open.records++\n		p.open.End, p.at = e.Number.before(), e.Number.before()\n		p.flush()\n	}\n	arrival := latest(p.arrival, e.Arrival)\n"}},
		Why:   "The records of an aggregate have one number: nothing tells which of them an object holds.",
		Test:  archived("A[127]"),
	},
	{
		Name:  "an-archive-that-recovers-once",
		Edits: []Edit{{"archive/shard.go", "len(s.plan.covered)+len(s.plan.done) == 0 {", "len(s.plan.covered)+len(s.plan.done) >= 0 {"}},
		Why:   "The worker that lists what is stored dies before it has passed all of it, and the next does not list.",
		Test:  archived("A2"),
	},
	{
		Name:  "an-archive-that-adopts-by-keys",
		Edits: []Edit{{"archive/adopt.go", "	return ok, nil\n", "	return ok || len(s.adoptions[at]) > 0, nil\n"}},
		Why:   "A record of a minute in which the other program has stored something is taken for stored.",
		From:  "the published de-duplication of Kinesis records by listing S3",
		Test:  archiveTest("TestAdopted"),
	},
	{
		Name:  "an-archive-that-gives-up-a-whole-intent",
		Edits: []Edit{{"archive/replay.go", "		behind = behind || stored\n", "		behind = behind && stored\n"}},
		Why:   "An object of it is stored, and in the gap: the one before it was removed by hand.",
		Test:  archiveTest("TestRemovedFromIntent"),
	},
	{
		Name:  "an-archive-that-a-record-stops",
		Edits: []Edit{{"archive/tail.go", "		f.entries = append(f.entries, fit(e))\n", "		f.entries = append(f.entries, e)\n"}},
		Why:   "A record that no format can hold is tried again and again, and nothing behind it is stored.",
		Test:  archiveTest("TestMalformed"),
	},
}

// archived are worlds of an archive that violate an invariant.
func archived(invariant string) *Test {
	return &Test{Args: []string{"./archive", "-run", "TestWorlds$", "-histories", "20000"}, Says: invariant + ": "}
}

// archiveTest is one of package archive's tests, which must fail.
func archiveTest(name string) *Test {
	return &Test{Args: []string{"./archive", "-run", name + "$"}, Says: "FAIL: " + name}
}
