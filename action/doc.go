// Package action contains code that the built-in actions share. Each action is a [pawl.Handler]
// in its own package.
package action
