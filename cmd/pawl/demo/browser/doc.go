// Package browser tests the page of `pawl files demo`, and the dashboard of `pawl run`, in Chromium. It is a
// separate module, so that Pawl's go.sum does not contain the browser driver.
//
//	cd cmd/pawl/demo/browser && go test .
//	PAWL_SCREENSHOTS=/tmp go test -run Look .
//	go test -run '^$' -bench Pages -benchtime 5x . -pagerows 1000000
package browser
