// Package rig contains tools for demos and tests. They are a relay that drops and repeats
// notifications, processes that can be killed, and a client of the files API.
package rig
