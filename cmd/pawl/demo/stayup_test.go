//go:build unix

package demo_test

import (
	"bufio"
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestStayUp(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, "demo", "--seed", "3")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := &outputLines{Scanner: bufio.NewScanner(pipe)}

	url := storeURLPattern.FindString(lines.until(t, "listens on"))
	pids := lines.pids(t, "share one ledger")
	pids = append(pids, lines.pids(t, "started in its place")...)
	if aws := lines.until(t, "aws --endpoint-url"); !strings.Contains(aws, "aws --endpoint-url "+url+" s3 cp cat.jpg s3://photos/in/cat.jpg") {
		t.Errorf("the command shown is %s", aws)
	}
	if explain := lines.until(t, " explain -c "); !strings.HasPrefix(explain, "  "+binary+" explain") {
		t.Errorf("the command shown is %s", explain)
	}
	dashboard := strings.TrimPrefix(strings.TrimSpace(lines.until(t, "The dashboard")), "The dashboard of a worker is ")
	lines.until(t, "Ctrl-C")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, dashboard, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(page), "grayscale") {
		t.Errorf("the dashboard's page is %q (%v)", page, err)
	}

	if err := put(url+"/photos/in/my%20cat.png", picture(t)); err != nil {
		t.Fatal(err)
	}
	lines.until(t, `✓ "s3://photos-out/gray/my cat.png" was created`)
	if got := fetch(t, url+"/photos-out/gray/my%20cat.png"); color.GrayModel.Convert(color.RGBA{R: 200, A: 255}) != got {
		t.Errorf("its pixels are %v", got)
	}

	for key, why := range map[string]string{
		"in/notes.jpg": "failed permanently: not a picture", "cat.jpg": "is ignored: the pipeline matches keys that begin with in/",
	} {
		if err := put(url+"/photos/"+key, []byte("not a picture")); err != nil {
			t.Fatal(err)
		}
		lines.until(t, "✗ s3://photos/"+key+" "+why)
	}

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	lines.rest()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the demo ended with %v\n%s", err, &lines.all)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d is still running: %v", pid, err)
		}
	}
	if !empty(t, tmp) {
		t.Error("the demo left its folder behind")
	}
}

type outputLines struct {
	*bufio.Scanner
	all bytes.Buffer
}

// until returns the next line that contains text.
func (s *outputLines) until(t *testing.T, text string) string {
	t.Helper()
	for s.Scan() {
		s.all.WriteString(s.Text() + "\n")
		if strings.Contains(s.Text(), text) {
			return s.Text()
		}
	}
	t.Fatalf("missing output %q in\n%s", text, &s.all)
	return ""
}

// pids parses the next line that contains text.
func (s *outputLines) pids(t *testing.T, text string) (pids []int) {
	t.Helper()
	for _, part := range strings.Split(s.until(t, text), "(pid ")[1:] {
		number, _, _ := strings.Cut(part, ")")
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (s *outputLines) rest() {
	for s.Scan() {
		s.all.WriteString(s.Text() + "\n")
	}
}

func picture(t *testing.T) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		m.SetRGBA(i%8, i/8, color.RGBA{R: 200, A: 255})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func fetch(t *testing.T, url string) color.Color {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m.At(0, 0)
}
