// Package browser tests the page of `pawl files demo` in Chromium. It is a separate module, so that
// Pawl's go.sum does not contain the browser driver.
//
//	cd cmd/pawl/demo/browser && go test .
package browser
