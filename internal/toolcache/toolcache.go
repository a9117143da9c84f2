// Package toolcache knows where the programs that the tests need are kept, and
// builds them once.
//
// Each program is a Go module of its own under tools/, so that its hundreds of
// dependencies stay out of a library user's go.sum. Its binary lies outside the
// repository, named after what pins it: a changed go.mod is another binary. A
// program in Java is a Maven project, and a folder of jars; one for Node is a
// folder of packages; one for Python is a virtual environment.
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

// Tool is a program and the module that pins it.
type Tool struct {
	Name      string // of the binary
	Module    string // folder under tools/
	Package   string // main package, or main class where Java is set, or package and version for Node and Python
	Java      bool   // Maven fetches its jars
	Node      bool   // npm fetches its packages
	Python    bool   // pip fetches its packages
	Unpack    string // what Node runs when its packages are there, in their folder
	BuildTime string // how long the first build takes, for people
}

// The servers that tests run against.
var (
	MinIO = Tool{
		Name: "minio", Module: "minio", Package: "github.com/minio/minio",
		BuildTime: "2 to 6 minutes",
	}
	VersityGW = Tool{
		Name: "versitygw", Module: "versitygw", Package: "github.com/versity/versitygw/cmd/versitygw",
		BuildTime: "1 to 3 minutes",
	}
	// ElasticMQ speaks the protocol of SQS.
	ElasticMQ = Tool{
		Name: "elasticmq", Module: "elasticmq", Package: "org.elasticmq.server.Main", Java: true,
		BuildTime: "half a minute",
	}
	// DynamoDBLocal is Amazon's own imitation of DynamoDB.
	DynamoDBLocal = Tool{
		Name: "dynamodblocal", Module: "dynamodblocal", Package: "software.amazon.dynamodb.services.local.main.ServerRunner", Java: true,
		BuildTime: "half a minute",
	}
	// Kinesalite speaks the protocol of Kinesis, and is fast.
	Kinesalite = Tool{
		Name: "kinesalite", Module: "kinesalite", Package: "kinesalite@3.3.3", Node: true,
		BuildTime: "a few seconds",
	}
	// KinesisLocal speaks more of it.
	KinesisLocal = Tool{
		Name: "kinesislocal", Module: "kinesislocal", Package: "kinesis-local@0.6.2", Node: true,
		BuildTime: "a few seconds",
	}
)

// AWSTools are moto, which imitates many services of AWS, and the checkers of IAM
// policies, CloudFormation templates and Dockerfiles, in one virtual environment.
var AWSTools = Tool{
	Name: "awstools", Module: "awstools", Package: "moto==5.2.5", Python: true,
	BuildTime: "half a minute",
}

// Schemathesis makes requests from the description of an API, and checks the answers.
var Schemathesis = Tool{
	Name: "schemathesis", Module: "schemathesis", Package: "schemathesis==4.32.5", Python: true,
	BuildTime: "half a minute",
}

// Chromium is the browser in which pages are tested. It is there for Linux on x86-64.
var Chromium = Tool{
	Name: "chromium", Module: "chromium", Package: "@sparticuz/chromium@153.0.0", Node: true,
	// The package unpacks into the temporary folder, with the libraries that a bare
	// system lacks if it takes it for Amazon's.
	Unpack: `import fs from "node:fs";
process.env.TMPDIR = process.cwd();
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const {default: chromium} = await import("@sparticuz/chromium");
await chromium.executablePath();
fs.rmSync("node_modules", {recursive: true});`,
	BuildTime: "half a minute",
}

// Bento is what BenchmarkSQS compares Pawl with.
var Bento = Tool{
	Name: "bento", Module: "bento", Package: "github.com/pawlhq/pawl/tools/bento",
	BuildTime: "6 to 15 minutes",
}

// Restate is what BenchmarkPeers compares Pawl with.
var Restate = Tool{
	Name: "restate", Module: "restate", Package: "@restatedev/restate-server@1.7.12", Node: true,
	BuildTime: "half a minute",
}

// ErrNoJava says that a tool cannot be had, because this machine lacks java or mvn.
var ErrNoJava = errors.New("java and mvn are not both installed (Debian: apt-get install default-jre-headless maven)")

// ErrNoNode says the same of node or npm.
var ErrNoNode = errors.New("node and npm are not both installed (Debian: apt-get install nodejs npm)")

// ErrNoChromium says that there is no browser for this system.
var ErrNoChromium = errors.New("the pinned browser is there for Linux on x86-64 alone")

// ErrNoPython is returned when Python, or its module venv, is not installed.
var ErrNoPython = errors.New("python3 with venv is not installed (Debian: apt-get install python3-venv)")

// ErrNoTerraform is returned when Terraform is not installed.
var ErrNoTerraform = errors.New("terraform is not installed")

// IsMissingRuntime reports whether err is about a program that the tests use but do not install,
// so that a machine without it may leave out the tests that need it.
func IsMissingRuntime(err error) bool {
	return slices.ContainsFunc([]error{ErrNoJava, ErrNoNode, ErrNoChromium, ErrNoPython, ErrNoTerraform}, func(lacking error) bool { return errors.Is(err, lacking) })
}

// GolangCI checks the source.
var GolangCI = Tool{
	Name: "golangci-lint", Module: "lint", Package: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
	BuildTime: "2 to 6 minutes",
}

// Gremlins changes code to see tests fail.
var Gremlins = Tool{
	Name: "gremlins", Module: "gremlins", Package: "github.com/go-gremlins/gremlins/cmd/gremlins",
	BuildTime: "up to a minute",
}

const rootModule = "module github.com/pawlhq/pawl"

// Root returns the repository's folder: the one at or above the working
// directory whose go.mod is this module's.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(mod), "\n"); err == nil && strings.TrimSpace(first) == rootModule {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside Pawl's repository: change into it")
		}
		dir = parent
	}
}

// Dir returns the folder of the built programs: pawl/bin in the user's cache
// folder, or in the temporary folder on a machine without a home.
func Dir() string {
	if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(cache, 0o700) == nil {
		return filepath.Join(cache, "pawl", "bin")
	}
	return filepath.Join(os.TempDir(), "pawl-cache", "bin")
}

// NeedsRuntime reports that Java, Node or Python runs the tool.
func (t Tool) NeedsRuntime() bool { return t.Java || t.Node || t.Python }

// Path returns where the tool's binary is, or would be once built.
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
			return "", fmt.Errorf("what pins %s is missing: %w", t.Name, err)
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

// nodePins are the files that pin a program for Node.
var nodePins = []string{"package.json", "package-lock.json"}

// pythonPins is the file that pins a program for Python.
const pythonPins = "requirements.txt"

// Missing returns [ErrNoJava], [ErrNoNode], [ErrNoPython] or [ErrNoChromium] if the tool
// cannot be built or run here.
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

// Find returns the path of the built binary. Its error says how to have it.
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
