package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	region       = "us-east-1"
	pipelineName = "grayscale"
	inputPrefix  = "in/"
	outputPrefix = "gray/"
	hookPath     = "/events"

	listenVar = "PAWL_DEMO_LISTEN"
	tokenVar  = "PAWL_DEMO_TOKEN"
	apiVar    = "PAWL_DEMO_API"
	adminVar  = "PAWL_DEMO_ADMIN"

	configFile = "pawl.yaml"
	ledgerFile = "ledger.db"
)

var suffixes = []string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".JPG", ".JPEG", ".PNG"}

// Short leases and a short late-write window let takeovers and verifications happen during the
// demo.
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
admin: {listen: "${` + adminVar + `}"}
`

func writeConfig(dir, store string) error {
	text := fmt.Sprintf(configTemplate[1:], quoted("sqlite:"+filepath.Join(dir, ledgerFile)), quoted(store),
		"["+strings.Join(suffixes, ", ")+"]")
	return os.WriteFile(filepath.Join(dir, configFile), []byte(text), 0o600)
}

// quoted returns a YAML scalar in which the parser replaces no variable.
func quoted(s string) string { return strings.ReplaceAll(strconv.Quote(s), "${", "$${") }

func environment(listen, token string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") {
			env = append(env, v)
		}
	}
	return append(env, listenVar+"="+listen, tokenVar+"="+token, adminVar+"=127.0.0.1:0",
		"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+accessKey,
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true")
}

// accessKey is for clients that require a key. The store accepts any.
const accessKey = "demo"
