// Package lock is mutual exclusion and safe updates on an object store alone,
// for those who have a bucket and no database; and mutual exclusion on a register
// of a ledger, [OnRegister], by the same protocol.
//
// [Open] a bucket, which proves once that the store honours what the protocol
// relies on. Then
//
//   - a [Mutex] has one holder at a time,
//   - a [Semaphore] has up to n,
//   - an [RWMutex] has many readers or one writer,
//   - [Mutex.Lead] keeps one of many processes as leader,
//   - [Bucket.Update] reads an object, changes it and writes it, so that no
//     update is lost or applied twice; [UpdateJSON] does for one that is JSON.
//
// # What a lease is
//
// A lock is a lease: an object, or a register, that says who holds it, for how long, and with
// which fencing token. It is never deleted, so the token rises for ever: across
// releases, steals and forced releases, and across an accidental deletion of the
// object as well, as its first token is the time in microseconds.
//
// A holder renews its lease in the background. If it cannot, its context ends,
// with a cause, before anybody else can enter. A waiter takes a lease over when
// its object has not changed for its time to live, and 5 % more, on the waiter's
// own clock: no two machines' clocks are compared. They may differ in rate by
// 5 %.
//
// # What it cannot do
//
// A process can stand still at any instruction, and go on when its lease is long
// over, before it can notice. No lock can prevent that. Give the token of the
// lease to whatever is changed under it, and let that refuse a token that is
// lower than one that it has seen: [Bucket.Update] does, with a Fence.
//
// The token keeps rising after the lock's object was deleted only if the clock
// of who makes it anew is not behind that of who made it first, by more than the
// lock's age, and if no process stands still with the very first write in its
// hands for longer than that. Whoever deletes the object of a lock, or releases
// it by force, ends the exclusion for its present holder, which learns it at its
// next renewal.
package lock
