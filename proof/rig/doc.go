// Package rig contains tools for demos and end-to-end tests: a relay that drops and repeats
// notifications, worker processes that can be killed, and a client of the files API.
package rig
