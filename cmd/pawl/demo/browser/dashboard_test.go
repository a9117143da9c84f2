package browser

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pawlhq/pawl/proof/servertest"
)

const (
	adminToken = "dashboard-test-token"
	hookToken  = "Bearer notifications"
)

// dashboard is a running worker.
type dashboard struct {
	url, hook string // of the admin listener, and of the webhook
	fixed     string // the handler of thumbnails succeeds if this file exists
	log       chan string
}

const runConfig = `
ledger: sqlite:ledger.db
objects: {endpoint: %q, region: us-east-1, path_style: true}
pipelines:
  - name: thumbnails
    match: {bucket: photos, prefix: in/}
    exec: {command: [sh, -c, "test -e %s && cat"], to: "s3://small/"}
  - name: virus-scan
    match: {bucket: photos, prefix: up/}
    concurrency: 1
    exec: {command: [sleep, "3600"]}
sources:
  - webhook: {listen: "127.0.0.1:0", path: /events, token: %q}
admin: {listen: "127.0.0.1:0", token: %s}
retry: {base: 1h, max: 1h}
shutdown_timeout: 1s
`

// maxObjects bounds the objects in the store. A larger ledger has no audit.
const maxObjects = 5000

// startRun starts a worker with a ledger of the given number of rows.
func startRun(t testing.TB, rows int) *dashboard {
	t.Helper()
	s, dir := servertest.S3(t), t.TempDir()
	d := &dashboard{fixed: filepath.Join(dir, "fixed")}
	keys := seedLedger(t, filepath.Join(dir, "ledger.db"), rows)
	config := fmt.Sprintf(runConfig[1:], s.Endpoint, d.fixed, hookToken, adminToken)
	if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, append(args, "--json", "-c", filepath.Join(dir, "pawl.yaml"))...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey, "AWS_EC2_METADATA_DISABLED=true")
		return cmd
	}
	putObjects(t, s, append(keys[:min(len(keys), maxObjects)], "in/2026/lost.jpg")...)
	if rows <= maxObjects {
		out, err := command("audit", "--settle-window", "1ms", "--pipeline", thumbnails).CombinedOutput()
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 3 {
			t.Fatalf("pawl audit: %v\n%s", err, out)
		}
	}
	d.await(t, command("run"))
	d.hook = "http://" + d.awaitLog(t, "listening for notifications")["address"].(string) + "/events"
	return d
}

// await starts the process of the dashboard, and waits for its listener.
func (d *dashboard) await(t testing.TB, run *exec.Cmd) {
	t.Helper()
	stderr, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	d.log = make(chan string, 10_000)
	go func() {
		defer close(d.log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			d.log <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		for range d.log { // until the process has ended
		}
		if err := run.Wait(); err != nil {
			t.Errorf("%s: %v", run, err)
		}
	})
	d.url = "http://" + d.awaitLog(t, "admin listener")["address"].(string)
}

const archiveConfig = `
ledger: sqlite:archive.db
objects: {endpoint: %q, region: us-east-1, path_style: true}
archives: [{name: clicks, kinesis: {stream: %s, endpoint: %q, region: us-east-1}, to: "s3://%s/clicks/"}]
admin: {listen: "127.0.0.1:0", token: %s}
`

// startArchive starts a worker that archives a stream.
func startArchive(t testing.TB) *dashboard {
	t.Helper()
	s, streams, file := servertest.S3(t), servertest.Kinesalite(t), filepath.Join(t.TempDir(), "pawl.yaml")
	config := fmt.Sprintf(archiveConfig, s.Endpoint, streams.NewStream(t, 2), streams.Endpoint, s.NewBucket(t), adminToken)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "archive", "run", "--json", "-c", file)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey, "AWS_EC2_METADATA_DISABLED=true")
	d := &dashboard{}
	d.await(t, cmd)
	return d
}

// awaitLog returns the next log line with a message. It discards the lines before.
func (d *dashboard) awaitLog(t testing.TB, message string) (line map[string]any) {
	t.Helper()
	for text := range d.log {
		line = nil
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("log line %q: %v", text, err)
		}
		if line["msg"] == message {
			return line
		}
		if line["level"] == "ERROR" {
			t.Log(text)
		}
	}
	t.Fatalf("pawl run ended without logging %q", message)
	return nil
}

// putObjects creates the buckets and stores objects.
func putObjects(t testing.TB, s *servertest.Server, keys ...string) {
	t.Helper()
	for _, name := range []string{bucketName, "small"} {
		if _, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range keys {
		if key == hostileName {
			continue
		}
		if _, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName), Key: &key, Body: strings.NewReader(key)}); err != nil {
			t.Fatalf("%q: %v", key, err)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	d, a := startRun(t, 2500), startArchive(t)
	p := open(t)
	t.Run("overview", func(t *testing.T) { p.t = t; d.testOverview(p) })
	t.Run("paging", func(t *testing.T) { p.t = t; d.testPaging(p) })
	t.Run("keyboard", func(t *testing.T) { p.t = t; d.testKeyboard(p) })
	t.Run("object", func(t *testing.T) { p.t = t; d.testObject(p) })
	t.Run("redrive", func(t *testing.T) { p.t = t; d.testRedrive(p) })
	t.Run("tables", func(t *testing.T) { p.t = t; d.testTables(p) })
	t.Run("archives", func(t *testing.T) { p.t = t; a.testArchives(p) })
	p.t = t
	p.is(`typeof window.hacked`, "undefined")
	if said := p.complaints(); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
	p.checkRequests(d.url, a.url)
}

// visit opens a page. No script of a key or an error may run there.
func (d *dashboard) visit(p *page, path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(d.url + path))
	p.await(`document.readyState === "complete"`)
	p.is(`typeof window.hacked`, "undefined")
}

func (d *dashboard) logIn(p *page, path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(strings.Replace(d.url, "//", "//operator:"+adminToken+"@", 1) + path))
	p.await(`document.querySelector("nav")`)
}

func (d *dashboard) testOverview(p *page) {
	d.logIn(p, "/configuration")
	d.visit(p, "/")
	const row = `[...document.querySelectorAll("#live tr")].find((r) => r.innerText.startsWith("thumbnails"))`
	p.await(row)
	p.is(`document.querySelector("footer").innerText.startsWith("Rates are this process's; rows are the ledger's.")`, "true")
	const failed = `Number(` + row + `.querySelector('a[href*="state=failed"]').innerText)`
	p.await(failed + ` >= 25`)
	before := p.evaluate(failed)
	d.notify(p.t, "in/2026/05/0000112.jpg") // fails, because d.fixed is missing
	p.await(failed + ` > ` + before)

	p.do(chromedp.Click(chromedp.CSS("#pause")))
	p.await(`source.readyState === EventSource.CLOSED`)
	p.do(chromedp.Click(chromedp.CSS("#pause")))
	p.await(`source.readyState === EventSource.OPEN`)
}

// notify sends a notification of a created object.
func (d *dashboard) notify(t testing.TB, key string) {
	t.Helper()
	body := fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":%q,"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":%q},"object":{"key":%q,"size":4,"sequencer":"%016X"}}}]}`,
		time.Now().UTC().Format(time.RFC3339), bucketName, key, time.Now().UnixNano())
	d.do(t, http.MethodPost, d.hook, map[string]string{"Authorization": hookToken, "Content-Type": "application/json"}, body, http.StatusOK)
}

// do makes a request, and returns the body of the response.
func (d *dashboard) do(t testing.TB, method, url string, header map[string]string, body string, want int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Host = header["Host"]
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %d, want %d; %v\n%s", method, url, resp.StatusCode, want, err, text)
	}
	return string(text)
}

// next follows a link by its text, and waits for the page that it leads to.
func (p *page) next(text string) {
	p.t.Helper()
	link := fmt.Sprintf(`[...document.querySelectorAll("a, button")].find((e) => e.innerText.includes(%q))`, text)
	p.evaluate(link + `.innerText`) // fails if there is none
	p.leave(link + `.click()`)
}

// leave evaluates an expression that opens another page, and waits for the other page.
func (p *page) leave(expression string) {
	p.t.Helper()
	p.evaluate(`window.left = true`)
	p.evaluate(`setTimeout(() => {` + expression + `})`)
	p.arrive()
}

// arrive waits until the page after the one with window.left is complete.
func (p *page) arrive() {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		// An evaluation fails if the page changes meanwhile.
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`!window.left && document.readyState === "complete"`))
		if err == nil && got {
			return
		}
	}
	p.t.Fatalf("the page did not change: %s", p.evaluate(`location.href`))
}

func (d *dashboard) testPaging(p *page) {
	seen := map[string]bool{}
	d.visit(p, "/objects?pipeline=thumbnails")
	for {
		for key := range strings.Lines(p.evaluate(`[...document.querySelectorAll("td.key a")].map((a) => a.getAttribute("href") + "\n").join("")`)) {
			if seen[key] {
				p.t.Fatalf("%s is on two pages", key)
			}
			seen[key] = true
		}
		if p.evaluate(`[...document.links].some((a) => a.innerText === "Continue")`) == "false" {
			break
		}
		p.next("Continue")
	}
	if len(seen) < 2400 {
		p.t.Errorf("paging showed %d rows", len(seen))
	}
	p.next("First rows")
	p.is(`location.search`, "?pipeline=thumbnails")

	d.visit(p, "/objects?state=unreadable")
	p.await(`document.body.innerText.includes("1000 examined")`)
	for p.evaluate(`document.querySelectorAll("td.key").length`) == "0" {
		p.next("Continue")
	}
	p.is(`document.querySelector("td.key").innerText`, "s3://photos/in/2026/newer-version.jpg")
}

func (d *dashboard) testKeyboard(p *page) {
	d.visit(p, "/objects")
	focus := func(name string) {
		for range 50 {
			if p.evaluate(`document.activeElement.name`) == name {
				return
			}
			p.do(chromedp.KeyEvent(kb.Tab))
		}
		p.t.Fatalf("the Tab key does not reach %s", name)
	}
	p.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // skip the navigation
	focus("pipeline")
	p.do(chromedp.KeyEvent("thumbnails"))
	focus("state")
	p.do(chromedp.KeyEvent("dead"))
	focus("error")
	p.do(chromedp.KeyEvent("unexpected eof"))
	focus("prefix")
	p.do(chromedp.KeyEvent("s3://photos/in/2026/b"))
	p.evaluate(`window.left = true`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.arrive()
	p.is(`new URLSearchParams(location.search).get("state")`, "dead")
	p.is(`document.querySelectorAll("td.key").length`, "30")
	p.is(`[...document.querySelectorAll("td.error")].every((e) => e.innerText.includes("unexpected EOF"))`, "true")
}

// objectPath returns the path of the page of an object.
func objectPath(pipeline, key string) string {
	return "/object?" + url.Values{"pipeline": {pipeline}, "bucket": {bucketName}, "key": {key}}.Encode()
}

func (d *dashboard) testObject(p *page) {
	d.visit(p, "/objects?state=dead&prefix="+url.QueryEscape("s3://photos/in/<"))
	p.next("onerror")
	p.is(`document.querySelector("main code").innerText`, `"s3://photos/`+hostileKeys[0]+`"`)
	p.is(`document.querySelector("main").innerText.includes("<script>window.hacked=1</script> \\x1b[2J")`, "true")
	p.is(`document.querySelector("main img, main script")`, "null")
	for _, key := range append(hostileKeys, hostileName) {
		d.visit(p, objectPath(cmp.Or(map[bool]string{true: scan}[key == hostileName], thumbnails), key))
		p.is(`document.querySelector("main strong").innerText`, "dead")
		p.is(`/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/.test(document.body.textContent.replaceAll("\t", ""))`, "false")
	}

	d.visit(p, objectPath(thumbnails, hostileKeys[0]))
	p.next("Redrive")
	p.await(`document.body.innerText.includes("redrove 1 row")`)
	if line := d.awaitLog(p.t, "redrive from the dashboard"); line["force"] != false {
		p.t.Errorf("logged %v", line)
	}
	p.next("Back")
	p.eventually(`text.includes("<strong>failed</strong>")`) // workers tried again
	if err := os.WriteFile(d.fixed, nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.next("Force")
	p.is(`document.querySelector("main").innerText.includes("Repeat the effect")`, "true")
	p.next("Force")
	p.await(`document.body.innerText.includes("redrove 1 row")`)
	p.next("Back")
	p.eventually(`text.includes("<strong>settled</strong>")`)
	d.visit(p, objectPath(thumbnails, hostileKeys[0]))
	p.is(`document.querySelector(".timeline").innerText.includes("redriven")`, "true")
}

// eventually fetches the current page until the expression of its text is true.
func (p *page) eventually(expression string) {
	p.t.Helper()
	p.evaluate(`(async () => {
		const end = Date.now() + 60_000;
		for (;;) {
			const text = await (await fetch(location.href)).text();
			if (` + expression + `) return;
			if (Date.now() > end) throw new Error("never: " + text);
		}
	})()`)
}

func (d *dashboard) testRedrive(p *page) {
	const path = "/objects?pipeline=thumbnails&state=dead&prefix=s3://photos/in/2026/broken"
	d.visit(p, path)
	p.next("Redrive")
	p.is(`document.querySelector("main").innerText.includes("30 ")`, "true")
	p.next("Cancel")
	p.is(`document.querySelectorAll("td.key").length`, "30")
	p.next("Redrive")
	p.next("Redrive 30 rows")
	p.await(`document.body.innerText.includes("redrove 30 rows")`)
	d.visit(p, path)
	p.is(`document.querySelectorAll("td.key").length`, "0")
}

func (d *dashboard) testTables(p *page) {
	for path, want := range map[string]string{"/sources": "webhook", "/audits": "thumbnails", "/configuration": "virus-scan"} {
		d.visit(p, path)
		p.is(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, want), "true")
		for _, secret := range []string{adminToken, hookToken} {
			p.is(fmt.Sprintf(`document.documentElement.outerHTML.includes(%q)`, secret), "false")
		}
	}
}

func (d *dashboard) testArchives(p *page) {
	d.logIn(p, "/archives")
	p.eventually(`text.includes("<td>clicks</td>") && text.includes("<td>24h0m0s</td>")`) // the worker has read the stream
	p.is(`document.querySelector("nav [aria-current]").innerText`, "Archives")
	d.visit(p, "/") // leads to the archives
	p.is(`location.pathname`, "/archives")
}

// checkRequests checks that the page has sent requests to these origins only.
func (p *page) checkRequests(origins ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sent := range p.requests {
		if u, err := url.Parse(sent); err != nil || !slices.Contains(origins, "http://"+u.Host) {
			p.t.Errorf("the page sent a request to %s", sent)
		}
	}
	if len(p.requests) == 0 {
		p.t.Error("no request was recorded")
	}
}
