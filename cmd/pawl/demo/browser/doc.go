// Package browser tests the page of `pawl files demo` in Chromium. It is a module of
// its own, so that a library user's go.sum does not grow by what drives the browser.
//
//	cd cmd/pawl/demo/browser && go test .
package browser
