// Package supervise runs a command in a process group that ends by a deadline, even if the
// supervising process is stopped or killed.
//
// [Run] starts a guard and the command in a new process group. The guard runs the calling program
// again, which calls [Guard]. It ends the group when the deadline passes or the supervisor dies.
// The supervisor renews the deadline, forwards signals, and waits for the command. Processes that
// leave the group keep running.
//
// [NewGroup] and [KillGroup] are for commands without a guard.
package supervise
