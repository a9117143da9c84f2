// Package files keeps an index of the files that users upload straight into a
// bucket, and keeps the two together.
//
// The bucket holds bytes, the index holds truth. An upload begins with a row and a
// signed URL; the bytes go to the store by that URL. Only a look moves a row by
// what the bucket holds: [Service.Look] loads the row, asks the store, decides and
// writes on condition that the row is still the same. Notifications, timers and
// audits do nothing but look.
//
// The transitions are pure, in transition.go. The index keeps its rows in any record store
// of package store.
package files
