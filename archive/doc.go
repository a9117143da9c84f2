// Package archive stores every record of a stream in a bucket, exactly once.
//
// # Run an archive
//
// An [Archive] reads a [Stream], and stores its records as objects below a prefix. A [Runner] runs one or
// more archives until its context ends:
//
//	clicks, err := archive.New(archive.Config{
//		Name:      "clicks",
//		Bucket:    "lake",
//		Prefix:    "clicks/",
//		Stream:    stream,                  // for example from archive/kinesisstream
//		Store:     objects,                 // for example from bucket/s3bucket
//		Registers: ledger.NewRows(records), // for example in store/postgres
//		Codec:     encode.Codec{},
//	})
//	…
//	runner := archive.Runner{Archives: []*archive.Archive{clicks}}
//	err = runner.Run(ctx)
//
// Several processes can run the same archive. Each shard has a lease, and one process at a time stores it.
//
// # Exactly once
//
// A register of the ledger has the progress of each shard, and its intent: the keys and digests of the next
// objects. A worker writes the intent before it stores the objects, each on the condition that its key is
// free. After a crash, the next worker stores exactly the intended objects. An object's key has the range of
// its sequence numbers.
//
// # Verify an archive
//
// [Archive.Verify] lists the objects, and proves that they cover every sequence number once:
//
//	report, err := clicks.Verify(ctx, archive.VerifyOptions{})
//	…
//	for _, f := range report.Findings {
//		fmt.Println(f.Kind, f.What)
//	}
//
// # Gaps
//
// Records that have expired before they were stored leave a gap. The archive stores a note with the range,
// and reports it.
//
// # Recover after a lost ledger
//
// If the ledger is lost, the archive stops with [ErrLostRegisters], because a new ledger cannot know what is
// stored. [Archive.Recover] binds the archive to the new ledger.
package archive
