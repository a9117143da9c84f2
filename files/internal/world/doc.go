// Package world plays package files in simulated worlds: users upload, delete and
// undelete, notifications are lost, doubled and late, processes crash between any
// two steps or stand still, clocks differ, answers are lost and requests land late.
// Then all is left alone until it is at rest, and the index must agree with the
// bucket.
//
// One seed makes one world. What runs in it is the service itself.
package world
