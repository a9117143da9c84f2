package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What the demo's configuration files say.
const (
	region       = "us-east-1"
	pipelineName = "grayscale"
	inputPrefix  = "in/"
	outputPrefix = "gray/"
	hookPath     = "/events"

	// Environment variables of the workers.
	listenVar = "PAWL_DEMO_LISTEN"
	tokenVar  = "PAWL_DEMO_TOKEN"
	apiVar    = "PAWL_DEMO_API"

	// Files in the demo's folder.
	configFile = "pawl.yaml"
	ledgerFile = "ledger.db"
)

// suffixes are those of the pictures that the pipeline wants.
var suffixes = []string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".JPG", ".JPEG", ".PNG"}

// configuration is the file that all workers share. Leases are short, so that a
// dead worker's objects are taken over while one watches, and so is the horizon,
// so that what it may have left behind is looked at again.
const configTemplate = `
ledger: %s
objects: {endpoint: %s, region: ` + region + `, path_style: true}
pipelines:
  - name: ` + pipelineName + `
    match: {bucket: ` + inputBucket + `, prefix: ` + inputPrefix + `, suffix: %s}
    image: {grayscale: true, to: "s3://` + outputBucket + `/` + outputPrefix + `"}
sources:
  - webhook: {listen: "${` + listenVar + `}", path: ` + hookPath + `, token: "Bearer ${` + tokenVar + `}"}
lease: {ttl: 2s, skew: 500ms, late_write_window: 2s}
retry: {base: 200ms, max: 2s}
sweep_interval: 250ms
concurrency: 4
`

// writeConfig writes the configuration file into dir.
func writeConfig(dir, store string) error {
	text := fmt.Sprintf(configTemplate[1:], quoted("sqlite:"+filepath.Join(dir, ledgerFile)), quoted(store),
		"["+strings.Join(suffixes, ", ")+"]")
	return os.WriteFile(filepath.Join(dir, configFile), []byte(text), 0o600)
}

// quoted writes a text as a YAML scalar that is nothing but text.
func quoted(s string) string { return strings.ReplaceAll(strconv.Quote(s), "${", "$${") }

// environment is what a worker process is told: what its parent was, but the
// demo's store and keys in place of Amazon's.
func environment(listen, token string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") {
			env = append(env, v)
		}
	}
	return append(env, listenVar+"="+listen, tokenVar+"="+token,
		"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+accessKey,
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true")
}

// accessKey is for clients that insist on having one: the store believes any.
const accessKey = "demo"
