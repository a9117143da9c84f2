// Package demo contains the demos: `pawl demo` for pipelines, `pawl archive demo` and `pawl files
// demo`. Each runs an object store in memory and real worker processes on one machine, injects
// faults, and checks the results.
//
// A seed determines the changes and the faults of the notifications. The timing of the processes
// differs from run to run.
package demo
