package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
)

// hostile would run a script if it were interpreted as HTML.
const hostile = `<img src=x onerror=window.hacked=1>.png`

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	root, err := toolcache.Root()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "pawl-browser-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pawl")
	build := exec.Command("go", "build", "-o", binary, "./cmd/pawl")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pawl: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestPage(t *testing.T) {
	t.Parallel()
	p := open(t)
	url := startDemo(t)
	p.do(chromedp.Navigate(url))
	p.await(`document.querySelectorAll("#album li").length === 12`)
	p.do(chromedp.Click(chromedp.CSS("#more")))
	p.await(`document.querySelectorAll("#album li").length === 24`)
	p.do(chromedp.Click(chromedp.CSS("#more")))
	p.await(`document.querySelectorAll("#album li").length === 30 && document.getElementById("more").hidden`)
	p.await(`[...document.images].every((i) => i.complete && i.naturalWidth > 0)`)

	p.drop(picture(t, hostile, 40, 30))
	p.await(`document.querySelector("#new li img")?.naturalWidth === 40`)
	p.is(`document.querySelector("#new .name").textContent`, hostile)
	p.is(`document.getElementById("text").textContent`, hostile+" is uploaded.")
	p.is(`document.querySelector("#new img").alt`, hostile)

	p.do(chromedp.Click(chromedp.CSS("#new li button")))
	p.await(`document.getElementById("new").hidden && document.activeElement.id === "undo"`)
	p.is(`document.getElementById("text").textContent`, hostile+" is deleted.")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.await(`document.querySelector("#new li img")?.naturalWidth === 40`)
	p.is(`document.activeElement.ariaLabel`, "Delete "+hostile)

	p.do(chromedp.SetUploadFiles(chromedp.CSS("#pick"), []string{picture(t, "small.png", 20, 10)}))
	p.await(`document.querySelectorAll("#new li").length === 2 && document.querySelector("#new li img").naturalWidth === 20`)
	p.do(chromedp.Click(chromedp.CSS(`button[aria-label="Delete small.png"]`)))
	p.await(`document.querySelectorAll("#new li").length === 1`)

	p.do(chromedp.Reload())
	for _, n := range []string{"12", "24", "31"} {
		p.await(`document.querySelectorAll("#album li").length === ` + n)
		if n != "31" {
			p.do(chromedp.Click(chromedp.CSS("#more")))
		}
	}
	p.is(`[...document.querySelectorAll(".name")].pop().textContent`, hostile)
	p.is(`[...document.querySelectorAll(".name")].filter((n) => n.textContent === "small.png").length`, "0")

	p.is(`typeof window.hacked`, "undefined")
	if said := p.complaints(); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
}

func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	p := open(t)
	url := startDemo(t)
	p.do(chromedp.Navigate(strings.Replace(url, "127.0.0.1", "localhost", 1)))
	p.await(`document.querySelectorAll("#album li").length === 12`)
	p.is(`location.origin`, url) // otherwise signed URLs would have another origin
	p.evaluate(`document.addEventListener("securitypolicyviolation", (e) => document.body.dataset.refused = e.effectiveDirective)`)
	for _, c := range []struct{ try, directive string }{
		{`document.body.append(Object.assign(document.createElement("script"), {textContent: "window.hacked = 1"}))`, "script-src-elem"},
		{`document.body.append(Object.assign(document.createElement("script"), {src: "data:text/javascript,window.hacked=1"}))`, "script-src-elem"},
		{`document.body.insertAdjacentHTML("beforeend", "<img src=icon.svg onload='window.hacked = 1'>")`, "script-src-attr"},
		{`document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>")`, "style-src-attr"},
		{`void fetch("http://127.0.0.1:9/").catch(() => 0)`, "connect-src"},
		{`document.body.insertAdjacentHTML("beforeend", "<img src=http://127.0.0.1:9/>")`, "img-src"},
		{`document.body.insertAdjacentHTML("beforeend", "<iframe src=/></iframe>")`, "frame-src"},
	} {
		p.evaluate(`delete document.body.dataset.refused`)
		p.evaluate(c.try)
		p.await(`document.body.dataset.refused`)
		p.is(`document.body.dataset.refused`, c.directive)
	}
	p.is(`typeof window.hacked`, "undefined")

	// An HTML file is downloaded. If it were shown, it would run no script and have no origin.
	evil := filepath.Join(t.TempDir(), "evil.html")
	if err := os.WriteFile(evil, []byte(`<title>harmless</title><script>document.title = "hacked"</script>`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#pick"), []string{evil}))
	p.await(`document.querySelector("#new li a")`)
	link := p.evaluate(`document.querySelector("#new li a").href`)
	for header, want := range map[string]string{"Content-Disposition": "attachment", "Content-Security-Policy": "sandbox"} {
		p.is(fmt.Sprintf(`fetch(%q).then((answer) => answer.headers.get(%q))`, link, header), want)
	}
	if err := chromedp.Do(p.ctx, chromedp.Navigate(link)); err == nil || !strings.Contains(err.Error(), "ERR_ABORTED") {
		t.Errorf("the browser shows a page among the files: %v", err)
	}

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }))
	t.Cleanup(other.Close)
	p.do(chromedp.Navigate(other.URL))
	for _, request := range []string{`"/token", {method: "POST"}`, `"/uploads/"`, `"/openapi.yaml"`, `"/v1/entities/album/files"`} {
		path, options, _ := strings.Cut(request, ", ")
		p.is(fmt.Sprintf(`fetch(%q + %s, %s).then(() => "read", () => "refused")`, url, path, cmp.Or(options, "{}")), "refused")
	}
}

type page struct {
	t       *testing.T
	ctx     context.Context
	console func() (chromedp.ConsoleMessage, error, bool)

	mu       sync.Mutex
	requests []string // URLs
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) evaluate(expression string) string {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`(async () => String(await (`+expression+`)))()`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

func (p *page) await(expression string) {
	p.t.Helper()
	p.evaluate(`new Promise((resolve, reject) => {
		const look = () => { try { if (` + expression + `) resolve(true); } catch (error) { reject(error); } };
		new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		document.addEventListener("load", look, true); // of pictures
		setInterval(look, 100); // for changes outside the document
		setTimeout(() => reject(new Error("never: " + document.body.innerText)), 60_000);
		look();
	})`)
}

func (p *page) is(expression, want string) {
	p.t.Helper()
	if got := p.evaluate(expression); got != want {
		p.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// drop drags a file onto the page, as the operating system does.
func (p *page) drop(path string) {
	p.t.Helper()
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: []string{path}, DragOperationsMask: 1}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		_, err := chromedp.Call(p.ctx, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: 600, Y: 200, Data: data})
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *page) complaints() (all []string) {
	p.t.Helper()
	const end = "so far"
	p.evaluate(`console.log("` + end + `")`)
	for {
		m, err, ok := p.console()
		if err != nil || !ok {
			p.t.Fatalf("the console has ended: %v", err)
		}
		switch {
		case m.Text == end:
			return all
		case m.Type != "log" && m.Type != "info" && m.Type != "debug":
			all = append(all, m.String())
		}
	}
}

func open(t *testing.T) *page {
	t.Helper()
	path, env := servertest.Chromium(t)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.Env(env...), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.WindowSize(1200, 1000))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	console, stop := iter.Pull2(chromedp.Console(ctx))
	t.Cleanup(stop)
	p := &page{t: t, ctx: ctx, console: console}
	err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.requests = append(p.requests, e.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startDemo(t *testing.T) (url string) {
	t.Helper()
	demo := exec.Command(binary, "files", "demo", "--seed", "7")
	demo.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	demo.Stderr = os.Stderr
	said, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(os.Interrupt) // if it has ended, Wait returns the reason
		if err := demo.Wait(); err != nil {
			t.Errorf("pawl files demo: %v", err)
		}
	})
	var all strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if url, ok := strings.CutPrefix(lines.Text(), "  http://"); ok {
			return "http://" + url
		}
	}
	t.Fatalf("pawl files demo names no page:\n%s", &all)
	return ""
}

func picture(t *testing.T, name string, width, height int) (path string) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = 200
	}
	m.Set(0, 0, color.Black)
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
