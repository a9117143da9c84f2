//go:build unix

package root_test

import (
	"fmt"
	"net/http/httptest"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawlhq/pawl/proof/servertest"
)

// alerts-receiver: starts a receiver of alerts at $ALERTS, whose secret is $ALERTS_SECRET.
func startAlertsReceiver(ts *testscript.TestScript, _ bool, _ []string) {
	r := &servertest.AlertReceiver{}
	srv := httptest.NewServer(r)
	ts.Defer(srv.Close)
	ts.Setenv("ALERTS", srv.URL)
	ts.Setenv("ALERTS_SECRET", servertest.AlertsSecret)
	alertsReceivers.Store(srv.URL, r)
}

var alertsReceivers sync.Map // by URL

// alerted KIND CONDITION PIPELINE: waits until the receiver has got this message once; with !, it must
// not have got it yet.
func alerted(ts *testscript.TestScript, neg bool, args []string) {
	found, _ := alertsReceivers.Load(ts.Getenv("ALERTS"))
	r := found.(*servertest.AlertReceiver)
	message := fmt.Sprintf("/ %s %s pipeline %s", args[0], args[1], args[2])
	switch {
	case neg && r.Count(message) > 0:
		ts.Fatalf("got %s", message)
	case !neg && (!poll(func() bool { return r.Count(message) > 0 }) || r.Count(message) > 1):
		ts.Fatalf("got %d times %s, want once", r.Count(message), message)
	}
}
