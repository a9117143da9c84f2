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
	"net/url"
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
	queue := []string{home}
	for ; len(queue) > 0; queue = queue[1:] {
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
			links, isPage := fetch(t, at, texts)
			queue = append(queue, links...)
			if isPage {
				pages = append(pages, at)
			}
		}
		if fragment != "" && !strings.Contains(texts[at], fmt.Sprintf(` id="%s"`, fragment)) {
			t.Errorf("a link leads to %s, which has no such section", queue[0])
		}
	}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) <= len(guides) {
		t.Errorf("links lead to %d pages, but docs has %d (%v)", len(pages), len(guides), err)
	}
	t.Logf("%d pages; %d external links, not fetched:\n%s", len(pages), len(external), strings.Join(slices.Sorted(maps.Keys(external)), "\n"))
	return pages
}

// fetch stores the text at an address, and returns the links of a page.
func fetch(t *testing.T, at string, texts map[string]string) (links []string, isPage bool) {
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	base, errURL := url.Parse(at)
	if err != nil || errURL != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a link leads to %s: %s %v", at, resp.Status, err)
	}
	texts[at] = string(text)
	if isPage = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"); !isPage {
		return nil, false
	}
	for _, m := range link.FindAllStringSubmatch(texts[at], -1) {
		to, err := base.Parse(html.UnescapeString(m[1]))
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		links = append(links, to.String())
	}
	return links, true
}

const violations = `axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
	.map((v) => v.help + ": " + v.nodes.map((n) => n.html).join("\n")).join("\n"))`

// checkInBrowser writes a picture of each page to the folder PAWL_SCREENSHOTS.
func checkInBrowser(t *testing.T, home string, pages []string) {
	path, env := servertest.Chromium(t)
	axe, pictures := servertest.Axe(t), os.Getenv("PAWL_SCREENSHOTS")
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
	is := func(expression, want string) {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => String(await (`+expression+`)))()`, chromedp.EvalAwaitPromise))
		if err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", expression, got, err, want)
		}
	}
	picture := func(name string) {
		if pictures == "" {
			return
		}
		png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o600)
		}
		if err != nil {
			t.Error(err)
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
			for _, page := range pages {
				do(chromedp.Navigate(page))
				is(`location.href`, page)
				is(`document.documentElement.scrollWidth <= innerWidth`, "true")
				picture(fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(strings.TrimPrefix(page, home), "/", "-"), theme, width))
				if _, err := chromedp.Run(ctx, chromedp.Evaluate[int](axe+"; 0")); err != nil {
					t.Fatal(err)
				}
				is(violations, "")
			}
		}
	}
	do(chromedp.Navigate(home), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	is(`document.querySelector("main").contains(document.activeElement)`, "true")
	do(chromedp.Click(chromedp.CSS("header button")))
	is(`document.querySelector("nav").matches(":popover-open")`, "true")
	picture("menu")
	do(chromedp.KeyEvent(kb.Escape), chromedp.Focus(chromedp.CSS("input")), chromedp.KeyEvent("fencing lock"))
	is(`new Promise((found) => setInterval(() => { const hit = document.querySelector("search li a"); if (hit) found(hit.pathname); }, 50))`, "/pawl/docs/locks/")
	picture("search")
	is(`console.error("end")`, "undefined")
	if m, err, ok := console(); err != nil || !ok || m.Text != "end" {
		t.Errorf("the console has %v (%v)", m, err)
	}
}
