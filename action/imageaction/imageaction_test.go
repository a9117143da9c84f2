package imageaction

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/internal/actiontest"
)

func TestPipeline(t *testing.T) {
	config := Config{Grayscale: true, Width: 40}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := actiontest.New(t, h)
	inputs := map[string][]byte{}
	for i := range 40 {
		inputs[fmt.Sprintf("%d.jpg", i)] = encodeJPEG(t, photo(50+i, 60))
		inputs[fmt.Sprintf("%d.png", i)] = encodePNG(t, translucentPicture(50+i, 60))
	}
	for key, b := range inputs {
		w.Put(key, "", b)
	}
	w.Put("note.jpg", "image/jpeg", []byte("not really"))
	w.Put("bomb.gif", "image/gif", gifHeader(65535, 65535))
	w.Run()
	for key, in := range inputs {
		w.Settled(key)
		want, wantType, err := Convert(t.Context(), bytes.NewReader(in), config)
		if err != nil {
			t.Fatal(err)
		}
		got, gotType, ok := w.Output(key)
		if !ok || !bytes.Equal(got, want) || gotType != wantType {
			t.Errorf("%s: output exists %v, %s, equal %v", key, ok, gotType, bytes.Equal(got, want))
		}
	}
	for key, want := range map[string]string{
		"note.jpg": "s3://in/note.jpg: not a picture: the format is not JPEG, PNG, GIF or WebP",
		"bomb.gif": "s3://in/bomb.gif: gif picture of 65535 × 65535 pixels, more than the 25000000 allowed (max_pixels)",
	} {
		if got := w.Dead(key, true); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if _, _, ok := w.Output(key); ok {
			t.Errorf("%s has an output", key)
		}
	}

	w.Remove("3.jpg")
	w.Put("note.jpg", "image/jpeg", inputs["4.jpg"])
	w.Run()
	if _, _, ok := w.Output("3.jpg"); ok {
		t.Error("the output of a removed picture still exists")
	}
	w.Settled("note.jpg") // a valid picture revives the dead object
}

func TestPipelineWritesWebP(t *testing.T) {
	config := Config{Format: "webp", Quality: 75}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := actiontest.New(t, h)
	in := encodePNG(t, translucentPicture(50, 60))
	w.Put("a.png", "", in)
	w.Run()
	w.Settled("a.png")
	want, _, err := Convert(t.Context(), bytes.NewReader(in), config)
	if err != nil {
		t.Fatal(err)
	}
	got, contentType, ok := w.Output("a.png")
	if !ok || contentType != "image/webp" || !bytes.Equal(got, want) {
		t.Errorf("output exists %v, %s, equal %v", ok, contentType, bytes.Equal(got, want))
	}
}

func TestLargeFilesAreRejectedUnread(t *testing.T) {
	h, err := New(Config{MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	w := actiontest.New(t, h)
	w.Put("a.png", "", encodePNG(t, photo(30, 30)))
	w.Run()
	if got := w.Dead("a.png", true); !strings.Contains(got, "more than the 100 allowed (max_bytes)") {
		t.Errorf("error %q", got)
	}
}

func TestConcurrency(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, ok := h.(pawl.Limited)
	if !ok {
		t.Fatal("the handler does not implement pawl.Limited")
	}
	for cores, want := range map[int]int{1: 1, 2: 1, 3: 1, 8: 4} {
		before := runtime.GOMAXPROCS(cores)
		got := l.Concurrency()
		runtime.GOMAXPROCS(before)
		if got != want {
			t.Errorf("%d at a time on %d cores, want %d", got, cores, want)
		}
	}
}
