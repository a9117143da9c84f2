// Package check builds a release of the last commit and tests it as a user gets it. It is a separate module, so that
// Pawl's go.sum does not contain the tools. Some tests need root, the network, and programs of Debian.
//
//	make release-check
package check
