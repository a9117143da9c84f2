// Package demo contains the demos of pipelines, archives and files. Each runs an object store in
// memory and real worker processes, injects faults, and checks the results.
//
// A seed determines the changes and faults, but not the timing of the processes.
package demo
