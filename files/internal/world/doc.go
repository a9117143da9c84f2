// Package world runs the real files service in simulated worlds, one for each seed. Messages are
// lost, duplicated and late, processes crash or pause, and clocks differ. Finally, the faults end
// and all timers run. Then index and bucket must agree.
package world
