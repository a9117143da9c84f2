// Package e2e contains end-to-end tests: real object stores send their notifications to real
// workers, in this process and in separate processes that are killed at random.
package e2e
