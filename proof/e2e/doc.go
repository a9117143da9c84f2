// Package e2e holds tests of the whole: real object stores send their own
// notifications to real workers, in this process and in processes of their own
// that are killed at random.
package e2e
