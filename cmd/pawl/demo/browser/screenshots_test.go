package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/pawlhq/pawl/proof/servertest"
)

// TestDashboardScreenshots checks each page with axe, in both themes and at the width of a phone. With
// PAWL_SCREENSHOTS, it writes a picture of each page to that folder.
func TestDashboardScreenshots(t *testing.T) {
	t.Parallel()
	d, a := startRun(t, 110), startArchive(t)
	if err := os.WriteFile(d.fixed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		d.notify(t, fmt.Sprintf("in/2026/broken-%03d.jpg", i))
	}
	p, axe := open(t), servertest.Axe(t)
	a.logIn(p, "/archives")
	p.eventually(`text.includes("<td>24h0m0s</td>")`)
	d.logIn(p, "/configuration")
	for _, theme := range []string{"light", "dark"} {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for size, width := range map[string]int64{"wide": 1200, "phone": 390} {
			p.do(chromedp.EmulateViewport(width, 844))
			for name, path := range map[string]string{
				"overview": "/", "objects": "/objects", "dead": "/objects?state=dead&prefix=s3://photos/in/2026/broken-01", "redrive": "/objects/redrive?state=dead",
				"hostile": objectPath(thumbnails, hostileKeys[0]), "settled": objectPath(thumbnails, "in/2026/01/0000096.jpg"),
				"failed": objectPath(thumbnails, "in/2026/late-003.jpg"), "stuck": objectPath(scan, "up/held-001.zip"),
				"sources": "/sources", "audits": "/audits", "configuration": "/configuration", "archives": "/archives", "problem": "/objects?after=forged",
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, theme, size), func(t *testing.T) {
					p.t = t
					map[bool]*dashboard{true: a, false: d}[name == "archives"].visit(p, path)
					p.is(`matchMedia("(prefers-color-scheme: dark)").matches`, fmt.Sprint(theme == "dark"))
					p.is(`document.documentElement.scrollWidth <= innerWidth`, "true")
					p.screenshot(name + "-" + theme + "-" + size)
					p.checkAccessibility(axe)
				})
			}
		}
	}
	p.t = t
	refused := func(said string) bool { return strings.Contains(said, "status of 400 (Bad Request)") } // "problem"
	if said := slices.DeleteFunc(p.complaints(), refused); len(said) > 0 {
		t.Errorf("the console has %q", said)
	}
	p.checkRequests(d.url, a.url)
}

func (p *page) screenshot(name string) {
	p.t.Helper()
	folder := os.Getenv("PAWL_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) checkAccessibility(axe string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[int](axe+"; 0")); err != nil {
		p.t.Fatal(err)
	}
	p.is(`axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
		.map((v) => v.help + ": " + v.nodes.map((n) => n.html).join("\n")).join("\n"))`, "")
}
