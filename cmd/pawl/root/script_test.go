//go:build unix

package root_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/root"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pawl": func() {
			os.Exit(root.Main(context.Background(), os.Args[1:], app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
		},
		"entered": checkEntered,
	})
}

// The scripts are in the packages of the commands; commands_test.go has the script commands.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("../*/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("AWS_ACCESS_KEY_ID", "pawl")
			e.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			// Another run's store may have the same port.
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"alerted":              alerted,
			"alerts-receiver":      startAlertsReceiver,
			"await":                await,
			"s3-unconditional":     startCareless,
			"closed":               closed,
			"copy":                 copyObject,
			"delete":               remove,
			"denied":               startDenied,
			"empty":                empty,
			"exits":                exits,
			"denied-suffix":        startPartlyDenied,
			"get":                  get,
			"index":                index,
			"terminate-repeatedly": terminateRepeatedly,
			"json":                 jsonField,
			"object":               object,
			"otlp":                 startCollector,
			"port":                 port,
			"post":                 post,
			"put":                  put,
			"released":             released,
			"s3":                   startS3,
			"s3-probing":           startProbing,
			"spans":                spans,
			"terminate":            terminate,
			"unprivileged":         asUnprivileged,
		},
	})
}
