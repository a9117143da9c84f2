// Package world runs package files in simulated worlds. Users upload, delete and undelete files.
// Notifications are lost, duplicated and late. Processes crash or are suspended between any two
// steps. Clocks differ, responses are lost, and requests land late. Finally, the faults end and all
// timers run. Then index and bucket must agree.
//
// Each seed determines one world. The simulation runs the real service.
package world
