// Package supervise runs a command in a process group that ends by a deadline, even if the
// supervising process is stopped or killed.
//
// [Run] starts a command, and a guard that ends its process group when the deadline passes or the
// supervisor dies. The guard runs the calling program again, which calls [Guard]. Processes that
// leave the group keep running.
//
// [NewGroup] and [KillGroup] are for commands without a guard.
package supervise
