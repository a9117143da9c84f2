// Package action holds what the ready-made pipeline actions have in common: the
// facts of an attempt as a program or a service outside Pawl gets to see them,
// and the words that come back from it.
//
// The actions themselves are worker handlers, one package each: imageaction,
// copyaction, execaction and httpaction.
package action
