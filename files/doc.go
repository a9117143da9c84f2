// Package files keeps an index of the files that users upload directly to a bucket, and keeps index
// and bucket consistent.
//
// # Run the service
//
// Package files/server runs the service: the API, notifications, timers, and a daily audit. This package has
// the parts below the API.
//
// # Upload a file
//
// The index is the source of truth for the state of each file. An upload starts with a row and a
// signed URL, with which the client sends the bytes:
//
//	s := &files.Service{Index: files.NewIndex(records), Objects: objects, Times: files.DefaultTimes(), Prefix: "files/"}
//	file, put, err := s.Upload(ctx, "user-7", "", files.Promise{Size: 5, ContentType: "text/plain", SHA256: sum})
//
// The client then sends the bytes by put.Method to put.URL, with put.Headers.
//
// # Reconcile a file
//
// [Service.Reconcile] loads the row, reads the object, decides, and writes the row if it is unchanged:
//
//	file, err = s.Reconcile(ctx, file.ID, true)
//	fmt.Println(file.State) // indexed
//
// Notifications, timers and audits only trigger reconciliations: [Sink], [Sweeper] and [Service.Audit].
//
// # Store the index
//
// The index works on any record store of package store that has Apply.
package files
