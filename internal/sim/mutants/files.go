package mutants

// uploads get wrong what the files of users live by. The worlds of package filesim
// notice.
var uploads = []Mutant{
	{
		Name: "a-file-deleted-without-a-tombstone",
		Edits: []Edit{
			{"files/service.go", "		return f.deleted(&s.Times, s.now())\n", "		if next, err := f.deleted(&s.Times, s.now()); err != nil {\n			return next, err\n		}\n		return f.bury(Gone, &s.Times, s.now()), nil\n"},
			{"files/service.go", "		o, err := s.apply(ctx, &f, Change{Next: next})\n", "		o, err := s.apply(ctx, &f, Change{Next: next, Drop: next.State == Gone})\n		if err == nil && next.State == Gone {\n			err = s.Objects.Remove(ctx, f.Key)\n		}\n"},
		},
		Why:  "An upload on its way lands after its row is gone, and nothing knows of the object.",
		Test: filed("went from (pending|indexed|lost) to unknown"),
	},
	{
		Name:  "a-file-that-cannot-be-undeleted-for-as-long",
		Edits: []Edit{{"files/transition.go", "landed && !now.Before(f.DeletedAt.Add(t.Undelete))", "landed"}},
		Why:   "A deleted file is purged as soon as no upload can land, while its user may still want it back.",
		Test:  filed("is purged while it may be undeleted"),
	},
	{
		Name:  "a-notification-trusted-for-its-size",
		Edits: []Edit{{"files/service.go", "		next, what := f.looked(seen, notice", "		if notice {\n			seen.Size, seen.SHA256 = f.Size, f.SHA256\n		}\n		next, what := f.looked(seen, notice"}},
		Why:   "What lies there is something else, and is shown as what was promised.",
		Test:  filed("its object is not what was promised|a notification has said that its object changed"),
	},
	{
		Name:  "an-object-removed-before-its-row-says-so",
		Edits: []Edit{{"files/transition.go", "func (f *File) removable() bool { return f.State == Purging", "func (f *File) removable() bool {\n	return f.State == Deleted && !f.LookAt.After(f.UpdatedAt.Add(time.Hour)) || f.State == Purging"}},
		Why:   "An undelete that looked before brings a file back that has no bytes.",
		Test:  filed("was removed while it was deleted"),
	},
	{
		Name: "a-tombstone-dropped-while-uploads-land",
		Edits: []Edit{
			{"files/transition.go", "	if f.LandBy.After(now) {\n		f.DropAt = f.LandBy\n	}\n", ""},
			{"files/transition.go", "		if !s.Found && landed && !now", "		if !s.Found && !now"},
			{"files/file.go", "{ return max(t.Delay+t.Skew, 24*time.Hour) }", "{ return t.Skew }"},
		},
		Why:  "An upload on its way lands after its tombstone is gone, and nothing knows of the object.",
		Test: filed("at rest 0.* is unknown: there is an object of it|were both begun by"),
	},
	{
		Name:  "a-tombstone-dropped-before-its-idempotency-key-may-go",
		Edits: []Edit{{"files/file.go", "{ return max(t.Delay+t.Skew, 24*time.Hour) }", "{ return t.Delay + t.Skew }"}},
		Why:   "A client that asks again within the day begins a second file.",
		Test:  filed("were both begun by"),
	},
	{
		Name:  "an-undelete-without-a-look",
		Edits: []Edit{{"files/service.go", "		return f.undeleted(seen, s.now())\n", "		if !f.WasPending {\n			seen = Seen{Found: true, Size: f.Size, SHA256: f.SHA256}\n		}\n		return f.undeleted(seen, s.now())\n"}},
		Why:   "A file comes back whose bytes are gone.",
		Test:  filed("is visible, and has had no object"),
	},
	{
		Name: "an-undelete-of-what-is-being-purged",
		Edits: []Edit{
			{"files/service.go", "		if f.State != Deleted {\n", "		if f.State != Deleted && f.State != Purging {\n"},
			{"files/transition.go", "	case f.State != Deleted:\n", "	case f.State != Deleted && f.State != Purging:\n"},
		},
		Why:  "The removal of the object is on its way, and takes it from the file that came back.",
		Test: filed("went from purging to indexed"),
	},
	{
		Name:  "a-quota-apart-from-its-row",
		Edits: []Edit{{"files/service.go", "		c.Limit = s.limit(c.Next.Entity)\n", "		used, err := s.Index.Used(ctx, c.Next.Entity)\n		if err != nil || used+c.Quota > s.limit(c.Next.Entity) {\n			return Outcome{Result: OverQuota}, err\n		}\n		c.Limit = 1<<63 - 1\n"}},
		Why:   "Two uploads at once both find room for one.",
		Test:  filed("uses [0-9]+ bytes of [0-9]+"),
	},
	{
		Name:  "a-quota-released-twice",
		Edits: []Edit{{"files/transition.go", "	case was && !is:\n", "	case was && !is || from != nil && from.State == Expired:\n"}},
		Why:   "An upload that expired gives its bytes back once more when its tombstone goes.",
		Test:  filed("bytes, and its files are"),
	},
	{
		Name:  "a-sweep-at-the-end-of-the-url",
		Edits: []Edit{{"files/transition.go", "	landBy := putBy.Add(t.Upload)\n", "	landBy := putBy\n"}},
		Why:   "An upload that began in time ends after its row has expired.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name:  "a-sweep-without-a-look",
		Edits: []Edit{{"files/service.go", "		next, what := f.looked(seen, notice", "		if !notice && f.State == Pending {\n			seen.Found = false\n		}\n		next, what := f.looked(seen, notice"}},
		Why:   "The notification was lost: the bytes are there, and the row expires.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name:  "a-sweep-by-the-own-clock",
		Edits: []Edit{{"files/transition.go", "		if f.State == Pending && landed {", "		if f.State == Pending && !now.Before(f.LandBy) {"}},
		Why:   "A clock that is fast expires uploads that the store still takes.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name:  "an-idempotency-key-apart-from-its-row",
		Edits: []Edit{{"files/memindex/memindex.go", "		if holder, ok := x.rows[x.keys[key]]; ok && holder", "		if holder, ok := x.rows[x.keys[key]]; ok && false && holder"}},
		Why:   "Two requests with one key find it free, and begin two files.",
		Test:  filed("were both begun by"),
	},
	{
		Name:  "a-fresh-expiry-on-signing-again",
		Edits: []Edit{{"files/service.go", "	signed, err := s.sign(ctx, &f)\n	return f, signed, err\n", "	signed, err := s.Objects.Sign(ctx, &f, s.now().Add(s.Times.URL))\n	return f, signed, err\n"}},
		Why:   "The second URL lets an upload begin that lands after the row has expired.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name: "a-date-taken-after-the-row",
		Edits: []Edit{
			{"files/service.go", "	signed, err := s.sign(ctx, &f)\n	if err != nil {\n		return File{}, SignedRequest{}, err\n	}\n	o, err", "	o, err"},
			{"files/service.go", "	return f, signed, nil\n}\n\n// resume", "	signed, err := s.Objects.Sign(ctx, &f, s.now().Add(s.Times.URL))\n	return f, signed, err\n}\n\n// resume"},
		},
		Why:  "A process that slept between the two signs a URL that outlives what the row says.",
		Test: filed("it is not visible, though its bytes have come"),
	},
	{
		Name: "a-look-at-the-bucket-before-the-row",
		Edits: []Edit{
			{"files/service.go", "		f, err := s.Index.Load(ctx, id)\n		if err != nil {\n			return File{}, err\n		}\n		seen, err := s.see(ctx, &f)\n		if err != nil {\n			return File{}, err\n		}\n", "		seen, err := s.Objects.Look(ctx, s.Prefix+id)\n		if err != nil {\n			return File{}, err\n		}\n		f, err := s.Index.Load(ctx, id)\n		if err != nil {\n			return File{}, err\n		}\n		if _, err := s.see(ctx, &f); err != nil {\n			return File{}, err\n		}\n"},
		},
		Why:  "What the bucket held before the row was written decides what becomes of the row.",
		Test: filed("is lost, and has had its object since|is not visible, though nobody deleted it|has had no object"),
	},
	{
		Name:  "a-file-with-nothing-to-do-by-have",
		Edits: []Edit{{"worker/attempt.go", "	if x.Pipeline.EveryRaise {", "	if x.Pipeline.EveryRaise && x.began {"}},
		Why:   "The object is as it was at the last look, and the row is not: no look follows the notification.",
		Test:  &Test{Args: []string{"./worker", "-run", "TestEveryRaise$"}, Says: "FAIL: TestEveryRaise"},
	},
	{
		Name:  "a-look-that-finds-nothing-and-leaves-no-trace",
		Edits: []Edit{{"files/transition.go", "	if early || notice && !f.good(s) &&", "	if early || false && !f.good(s) &&"}},
		Why:   "An undelete that looked before the object was gone lands after the last notification, and shows a file without bytes.",
		Test:  filed("and a notification has said that its object changed"),
	},
	{
		Name:  "a-clean-up-that-removes-the-object",
		Edits: []Edit{{"files/service.go", "	return File{}, errors.Join(ErrBroken, failed, err, s.abandon", "	return File{}, errors.Join(ErrBroken, failed, err, s.Objects.Remove(ctx, f.Key), s.abandon"}},
		Why:   "The upload lands late, is found by another look, and then loses its object.",
		Test:  filed("was removed while it was (pending|indexed)"),
	},
	{
		Name:  "an-upload-in-parts-that-expires-and-is-not-ended",
		Edits: []Edit{{"files/service.go", "	if err != nil || f.removable() || f.PartSize == 0 || seen", "	if err != nil || f.removable() || f.PartSize == 0 || f.State == Pending && !f.good(seen) || seen"}},
		Why:   "Its parts are completed after the row has expired.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name:  "an-upload-in-parts-that-is-ended-after-the-look",
		Edits: []Edit{{"files/service.go", "	if err := s.endUploads(ctx, f); err != nil {\n		return Seen{}, err\n	}\n	return s.Objects.Look(ctx, f.Key)\n", "	return seen, s.endUploads(ctx, f)\n"}},
		Why:   "Its parts are completed between the two, and the row expires all the same.",
		Test:  filed("it is not visible, though its bytes have come"),
	},
	{
		Name:  "a-tombstone-dropped-while-an-upload-in-parts-is-open",
		Edits: []Edit{{"files/service.go", "	if f.removable() {\n		if err := s.endUploads(ctx, f); err != nil {\n			return Seen{}, err\n		}\n", "	if f.removable() {\n"}},
		Why:   "An upload that was begun late stays, and nothing knows of it.",
		Test:  filed("is forgotten while an upload of it is open"),
	},
	{
		Name:  "an-upload-in-parts-that-is-left-when-its-file-is-there",
		Edits: []Edit{{"files/transition.go", "			return f.move(Indexed, f.leftovers(s), now), moved\n", "			return f.move(Indexed, time.Time{}, now), moved\n"}},
		Why:   "Of two requests with one key each has begun an upload, and one of them stays.",
		Test:  filed("at rest the upload .* is open"),
	},
	{
		Name:  "an-undelete-of-an-upload-that-can-land-no-more",
		Edits: []Edit{{"files/transition.go", "	case f.WasPending && s.Date.Before(f.LandBy):\n", "	case f.WasPending:\n"}},
		Why:   "The file is pending again, takes its quota, and waits for bytes that can never come.",
		Test:  transitions("undelete, nothing, landed true"),
	},
	{
		Name:  "a-purge-while-uploads-land",
		Edits: []Edit{{"files/transition.go", "		if landed && !now.Before(f.DeletedAt", "		if !now.Before(f.DeletedAt"}},
		Why:   "An upload that is on its way when the object is removed lands after it.",
		Test:  transitions("nothing, landed false .* purging"),
	},
	{
		Name:  "a-tombstone-dropped-though-its-object-is-there",
		Edits: []Edit{{"files/transition.go", "		if !s.Found && landed && !now", "		if landed && !now"}},
		Why:   "The removal failed, the row goes, and no look comes to the object again.",
		Test:  transitions("good, landed true .* dropped"),
	},
	{
		Name:  "an-audit-that-removes-by-the-listing-alone",
		Edits: []Edit{{"files/audit.go", "	err := a.look(ctx, id)\n	if !errors.Is(err, ErrNotFound) {\n		return a.goOn(ctx, key, err)\n	}\n	a.orphan(", "	_ = id\n	a.orphan("}},
		Why:   "A file whose row is younger than the scan of the index loses its object.",
		Test:  filed("was removed while it was (pending|indexed)"),
	},
	{
		Name:  "a-lost-file-that-is-looked-at-once",
		Edits: []Edit{{"files/transition.go", "f.move(Lost, now.Add(lostAgain), now)", "f.move(Lost, f.leftovers(s), now)"}},
		Why:   "The look that found it lost slept while its object came back, whose notification was heard before: it stays lost.",
		Test:  transitions("nothing, always: lost, look at never"),
	},
	{
		Name:  "an-upload-that-may-copy",
		Edits: []Edit{{"files/s3objects/s3objects.go", "	if pinned {\n", "	if pinned && false {\n"}},
		Why:   "Users read the files of others, and other buckets, with the rights of the service.",
		Test:  stored("TestStoreRefuses"),
	},
	{
		Name:  "a-part-that-may-copy",
		Edits: []Edit{{"files/s3objects/parts.go", "	if store.pins {\n", "	if store.pins && false {\n"}},
		Why:   "Users read the files of others, and other buckets, with the rights of the service.",
		Test:  stored("TestPartRefused"),
	},
	{
		Name:  "a-404-that-is-not-the-stores",
		Edits: []Edit{{"files/s3objects/s3objects.go", "isCode(err, \"NoSuchKey\")", "refused.HTTPStatusCode() == http.StatusNotFound"}},
		Why:   "While a proxy has lost the store, bytes that were stored expire.",
		Test:  stored("TestLookElsewhere"),
	},
	{
		Name:  "a-store-that-is-not-proved",
		Edits: []Edit{{"files/s3objects/prove.go", "(seen.Size != f.Size || seen.SHA256 != f.SHA256)", "seen.Size != f.Size"}},
		Why:   "The store shows no SHA-256, and every file expires.",
		Test:  stored("TestUnfit"),
	},
	{
		Name:  "a-completion-that-ends-with-its-request",
		Edits: []Edit{{"files/s3objects/parts.go", "context.WithTimeout(context.WithoutCancel(ctx), completion)", "context.WithTimeout(ctx, completion)"}},
		Why:   "A client that goes away breaks the completion off, and MinIO loses all parts of the file.",
		Test:  stored("TestCompleteGoesOn"),
	},
}

// stored is a test against real stores.
func stored(name string) *Test {
	return &Test{Args: []string{"./files/s3objects", "-run", name + "$"}, Says: "FAIL: " + name}
}

// filed are worlds of files in which something goes wrong.
func filed(says string) *Test {
	return &Test{Args: []string{"./internal/filesim", "-run", "TestWorlds$", "-histories", "400000"}, Says: says}
}

// transitions is the table of all transitions, in which a line differs.
func transitions(line string) *Test {
	return &Test{Args: []string{"./files", "-run", "TestTransitions$"}, Says: "is +" + line}
}
