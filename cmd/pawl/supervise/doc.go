// Package supervise runs a command in a process group that ends by a deadline, even if the
// supervising process is stopped or killed.
//
// [Run] starts two processes in a new process group: a guard and the command. The guard runs
// the calling program again, and that process calls [Guard]. The guard ends the group when the
// deadline passes or the supervisor dies. The supervisor renews the deadline, forwards signals,
// and waits for the command. The guard ends only the process group. Processes that leave the
// group keep running.
//
// [NewGroup] and [KillGroup] are for commands that need a process group but no guard.
package supervise
