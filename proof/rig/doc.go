// Package rig holds what demos and end-to-end tests share: a relay that loses and repeats
// notifications, worker processes that can be killed, and a client of the files API.
package rig
