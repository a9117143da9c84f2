// Package files keeps an index of the files that users upload directly to a bucket, and keeps index
// and bucket consistent.
//
// The index is the source of truth for the state of each file. An upload starts with a row and a
// signed URL, with which the client sends the bytes. [Service.Reconcile] loads the row, reads the
// object, decides, and writes the row if it is unchanged. Notifications, timers and audits only
// trigger reconciliations.
//
// The index works on any record store of package store that has Apply.
package files
