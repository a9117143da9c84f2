// Package lock provides mutual exclusion and safe updates on an object store, without a database.
// [OnRegister] provides mutual exclusion on a register of a ledger, with the same protocol.
//
// [Open] checks once that the store supports the protocol, and returns a [Bucket]. Then
//
//   - a [Mutex] has one holder at a time,
//   - a [Semaphore] has up to n holders,
//   - an [RWMutex] has many readers or one writer,
//   - [Mutex.Lead] elects one of many processes as leader,
//   - [Bucket.Update] reads, changes and writes an object, and no update is lost or applied twice; [UpdateJSON] does so for JSON.
//
// # Leases
//
// A lock is a lease: an object or a register with the holder, the time to live and the fencing
// token. Pawl never deletes it. The token therefore rises with every acquisition, also after
// releases, takeovers and forced releases. The first token of a new object is the time in
// microseconds, so the token also rises if the object was deleted by accident.
//
// A holder renews its lease in the background. If the renewals fail, the context of the lease ends
// with a cause before another process can acquire the lock. A waiter takes over a lease whose
// object has not changed for the time to live plus 5 %, by the waiter's own clock. Clocks of
// different machines are never compared; their rates may differ by 5 %.
//
// # Limits
//
// A process can pause at any instruction. When it continues, its lease may have expired, and the
// process may act before it notices. No lock can prevent that. Pass the lease's token to the system
// that you change, and let it reject a token that is lower than one it has seen. [Bucket.Update]
// does so with a Fence.
//
// After the deletion of a lock's object, the token keeps rising only under two conditions. First,
// the clock of the process that creates the object again is behind the clock of the first creator
// by less than the lock's age. Second, no process pauses for longer than the lock's age before it
// sends the write that creates the object. Deleting the object of a lock, or releasing it by force,
// ends the exclusion for the current holder. The holder notices at its next renewal.
package lock
