// Package rig holds what demos and end-to-end tests share: a relay that loses and repeats
// notifications, worker processes that can be killed, an object store in memory that
// reports its changes, and a client of the files API.
package rig
