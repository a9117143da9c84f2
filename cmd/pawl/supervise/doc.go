// Package supervise runs a command in a process group that ends by a deadline, even if the
// supervising process is stopped or killed.
//
// [Run] starts two processes in a new process group: a guard, which is another run of the
// calling program that calls [Guard], and the command. The guard ends the group when the
// deadline passes or the supervisor dies. The supervisor renews the deadline, forwards
// signals, and waits for the command. Only the process group ends: processes that leave it
// keep running.
//
// [NewGroup] and [KillGroup] are for commands that need a process group but no guard.
package supervise
