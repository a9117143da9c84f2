// Package audit finds what notifications have lost, by comparing what is in a
// bucket with what the ledger knows of it.
//
// [Decide] is the whole of the judgement, and pure: from a row and a look at
// its object it tells what was lost, and raises Want to what was seen. Order
// makes it safe. The row is loaded first, then the object is looked at, then
// the next row is swapped in on that very row; where that is refused, the row
// has moved on, and both are to be looked at again. An audit only ever raises:
// to complete is for workers, who look for themselves.
//
// What is younger than the settle window may still be on its way, and is left
// alone. So is a row that somebody works on, and on a converged bucket an audit
// changes nothing.
package audit
