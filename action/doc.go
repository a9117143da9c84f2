// Package action has what the built-in actions share: the facts of an attempt for external
// programs and services, and excerpts of their output.
//
// Each action is a [pawl.Handler] in its own package, for example imageaction or execaction.
package action
