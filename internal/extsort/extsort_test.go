package extsort

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEach compares the order with that of package slices. Small rooms make many runs.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	rapid.Check(t, func(t *rapid.T) {
		s := &Sorter{Room: rapid.SampledFrom([]int{0, 64, 200}).Draw(t, "room")}
		want := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "records")
		for _, r := range want {
			if err := s.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, bytes.Compare)
		var got [][]byte
		err := s.Each(t.Context(), func(record []byte) error {
			got = append(got, bytes.Clone(record))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) || s.Len() != int64(len(want)) {
			t.Fatalf("got %q, want %q", got, want)
		}
		s.Close()
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestWriteFailureIsReported(t *testing.T) {
	t.Setenv("TMPDIR", "/missing")
	s := &Sorter{Room: 32}
	if err := s.Add(make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(make([]byte, 30)); err == nil {
		t.Error("a missing folder for temporary files caused no error")
	}
}
