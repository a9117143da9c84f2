// Package action contains code that the built-in actions share. It formats the facts of an attempt
// for external programs and services, and shortens their output for errors.
//
// Each action is a [pawl.Handler] in its own package, for example imageaction or execaction.
package action
