// Package site checks the built documentation site: its links, and each page in a browser.
package site

import (
	"fmt"
	"html"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
)

// TestSite serves the site in a folder, as GitHub Pages does.
func TestSite(t *testing.T) {
	root, err := toolcache.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []toolcache.Tool{toolcache.Chromium, toolcache.Axe} {
		if _, err := tool.Build(t.Context(), root, os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	home := server.URL + "/pawl/"
	cmd := exec.CommandContext(t.Context(), "go", "run", "./tools/site", "--baseURL", home, "--destination", filepath.Join(dir, "pawl"))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkInBrowser(t, home, crawl(t, root, home))
}

const repository = "https://github.com/pawlhq/pawl/"

var link = regexp.MustCompile(` (?:href|src|data-index)="([^"]*)"`)

// crawl follows all links of the site and returns its pages. A link to the repository must lead to a file or folder of
// this tree. Other external links are only listed.
func crawl(t *testing.T, root, home string) (pages []string) {
	texts, external := map[string]string{}, map[string]bool{}
	for queue := []string{home}; len(queue) > 0; queue = queue[1:] {
		at, fragment, _ := strings.Cut(queue[0], "#")
		if !strings.HasPrefix(at, home) {
			kind, path, inTree := strings.Cut(strings.TrimPrefix(at, repository), "/main/")
			if !inTree || !strings.HasPrefix(at, repository) {
				external[at] = true
			} else if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.IsDir() != (kind == "tree") {
				t.Errorf("a link leads to %s: %v; want a blob, or the tree of a folder", at, err)
			}
			continue
		}
		if _, known := texts[at]; !known {
			text, links := fetch(t, at)
			texts[at] = text
			queue = append(queue, links...)
			if links != nil {
				pages = append(pages, at)
			}
		}
		if fragment != "" && !strings.Contains(texts[at], fmt.Sprintf(` id="%s"`, fragment)) {
			t.Errorf("a link leads to %s, which has no such section", queue[0])
		}
	}
	t.Logf("%d pages; %d external links, not fetched:\n%s", len(pages), len(external), strings.Join(slices.Sorted(maps.Keys(external)), "\n"))
	return pages
}

// fetch returns the text at an address, and the links if it is a page.
func fetch(t *testing.T, at string) (text string, links []string) {
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a link leads to %s: %s %v", at, resp.Status, err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return string(body), nil
	}
	for _, m := range link.FindAllStringSubmatch(string(body), -1) {
		to, err := resp.Request.URL.Parse(html.UnescapeString(m[1]))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		links = append(links, to.String())
	}
	return string(body), links
}

const violations = `axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
	.map((v) => v.help + ": " + v.nodes.map((n) => n.html).join("\n")).join("\n"))`

// checkInBrowser opens each page in both themes, on a wide screen and on a phone.
func checkInBrowser(t *testing.T, home string, pages []string) {
	axe := servertest.Axe(t)
	path, env := servertest.Chromium(t)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.Env(env...), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-background-networking", true))
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			t.Fatal(err)
		}
	}
	page := home
	is := func(expression, want string) {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => String(await (`+expression+`)))()`, chromedp.EvalAwaitPromise))
		if err != nil || got != want {
			t.Errorf("%s: %s is %q (%v), want %q", page, expression, got, err, want)
		}
	}
	do()
	console, stop := iter.Pull2(chromedp.Console(ctx))
	defer stop()
	err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, home) {
			t.Errorf("the browser requests %s", e.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{1280, 390} {
			do(chromedp.EmulateViewport(width, 844))
			for _, page = range pages {
				do(chromedp.Navigate(page))
				is(`document.documentElement.scrollWidth <= innerWidth`, "true")
				do(chromedp.Evaluate[chromedp.Void](axe + "; ({})"))
				is(violations, "")
			}
		}
	}
	page = home
	do(chromedp.Navigate(page), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	is(`document.querySelector("main").contains(document.activeElement)`, "true")
	do(chromedp.Click(chromedp.CSS("header button")))
	is(`document.querySelector("nav").matches(":popover-open")`, "true")
	do(chromedp.KeyEvent(kb.Escape), chromedp.Focus(chromedp.CSS("input")), chromedp.KeyEvent("fencing lock"))
	is(`new Promise((found) => setInterval(() => { const hit = document.querySelector("search li a"); if (hit) found(hit.pathname); }, 50))`, "/pawl/docs/locks/")
	is(`console.error("end")`, "undefined")
	if m, err, ok := console(); err != nil || !ok || m.Text != "end" {
		t.Errorf("the console has %v (%v)", m, err)
	}
}
