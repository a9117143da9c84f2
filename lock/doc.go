// Package lock provides mutual exclusion and safe updates on an object store, without a database.
// [OnRegister] provides mutual exclusion on a register of a ledger, with the same protocol.
//
// [Open] checks once that the store supports the protocol, and returns a [Bucket]. Then
//
//   - a [Mutex] has one holder at a time,
//   - a [Semaphore] has up to n holders,
//   - an [RWMutex] has many readers or one writer,
//   - [Mutex.Lead] elects one of many processes as leader,
//   - [Bucket.Update] and [UpdateJSON] read, change and write an object, and no update is lost or applied twice.
//
// # Leases
//
// A lock is a lease: an object or a register with the holder, the time to live and the fencing
// token. Pawl never deletes it, so the token rises with every acquisition. The first token of a new
// object is the time in microseconds. Therefore the token also rises if the object was deleted.
//
// A holder renews its lease in the background. If the renewals fail, the context of the lease ends
// before another process can acquire the lock. A waiter takes over a lease that has not changed for
// the time to live plus 5 %. It measures by its own clock: clocks of different machines are never
// compared, but their rates may differ by 5 %.
//
// # Limits
//
// A process can pause at any instruction, and act after its lease has expired. No lock can prevent
// that. Pass the lease's token to the system that you change, and let it reject a token lower than
// one it has seen. [Bucket.Update] does so with a Fence.
//
// After the deletion of a lock's object, the token rises only under two conditions. First, the
// clock of the next creator is behind the first creator's clock by less than the lock's age.
// Second, no process pauses for longer than the lock's age before it sends the write that creates
// the object. A deletion or a forced release ends the exclusion. The holder notices at its next
// renewal.
package lock
