package demo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

type step struct {
	at       time.Duration // since the first step
	key      string
	picture  *picture // nil: the step removes the object
	handling rig.Handling
	// awaitsOutput delays the removal until the object has its output. One removal per plan does
	// so, because a slow machine may otherwise remove no output.
	awaitsOutput bool
}

const (
	photographs = 60
	uploading   = 4 * time.Second // time span of the first uploads
	rewriting   = 2 * time.Second // maximum time from an upload to the next change
	removable   = 300 * time.Millisecond
)

type objectKind int

const (
	kept        objectKind = iota // the object does not change
	corrected                     // overwritten within 40 ms, so that the two notifications race
	withdrawn                     // removed within 40 ms; the late notification must not restore the output
	overwritten                   // the object is overwritten later
	removed
	returned // removed and uploaded again
)

// objectKinds has the number of objects of each kind. All others are kept.
var objectKinds = map[objectKind]int{corrected: 10, withdrawn: 4, overwritten: 9, removed: 8, returned: 6}

// Number of notifications with each fault.
const (
	lostFirsts  = 2 // of uploads that no change follows
	lostChanges = 3 // of overwrites or removals that no change follows
	lostOthers  = 3
	doubled     = 14
	delayed     = 12
)

func plan(seed uint64) []step {
	rng := rand.New(rand.NewPCG(seed, 0x7061776c))
	kinds := make([]objectKind, 0, photographs)
	for s := corrected; s <= returned; s++ {
		kinds = append(kinds, slices.Repeat([]objectKind{s}, objectKinds[s])...)
	}
	kinds = append(kinds, make([]objectKind, photographs-len(kinds))...)
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var steps []step
	for i, s := range kinds {
		steps = append(steps, stepsOf(rng, s, photographKey(i))...)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	assignFaults(rng, steps)
	awaitOutput(steps)
	return steps
}

// awaitOutput selects the last removal of an object that existed for a while and whose
// notifications are not lost.
func awaitOutput(steps []step) {
	before, chosen := map[string]*step{}, (*step)(nil)
	for i := range steps {
		put, now := before[steps[i].key], &steps[i]
		if now.picture == nil && put != nil && now.at-put.at >= removable && !put.handling.Drop && !now.handling.Drop {
			chosen = now
		}
		before[steps[i].key] = now
	}
	if chosen != nil {
		chosen.awaitsOutput = true
	}
}

func stepsOf(rng *rand.Rand, s objectKind, key string) []step {
	at := randomDuration(rng, 0, uploading)
	instant := func() time.Duration { return randomDuration(rng, 10*time.Millisecond, 40*time.Millisecond) }
	while := func() time.Duration { return randomDuration(rng, removable, rewriting) }
	put := func(after time.Duration) step {
		at += after
		return step{at: at, key: key, picture: newPicture(rng, key)}
	}
	remove := func(after time.Duration) step {
		at += after
		return step{at: at, key: key}
	}
	steps := []step{put(0)}
	switch s {
	case corrected:
		steps = append(steps, put(instant()))
	case withdrawn:
		steps = append(steps, remove(instant()))
	case overwritten:
		steps = append(steps, put(while()))
	case removed:
		steps = append(steps, remove(while()))
	case returned:
		steps = append(steps, remove(while()), put(instant()))
	}
	// The notifications race, so the relay delivers the first one last.
	if s == corrected || s == withdrawn {
		steps[0].handling.Delay = randomDuration(rng, 200*time.Millisecond, 900*time.Millisecond)
	}
	return steps
}

// Each notification has a small delay and at most one other fault.
func assignFaults(rng *rand.Rand, steps []step) {
	last := make(map[string]int)
	count := make(map[string]int)
	for i := range steps {
		last[steps[i].key] = i
		count[steps[i].key]++
	}
	order := rng.Perm(len(steps))
	take := func(n int, fits func(i int) bool, fault func(h *rig.Handling)) {
		for _, i := range order {
			if n > 0 && steps[i].handling == (rig.Handling{}) && fits(i) {
				fault(&steps[i].handling)
				n--
			}
		}
	}
	isLast := func(i int) bool { return last[steps[i].key] == i }
	drop := func(h *rig.Handling) { h.Drop = true }
	take(lostFirsts, func(i int) bool { return isLast(i) && count[steps[i].key] == 1 }, drop)
	take(lostChanges, func(i int) bool { return isLast(i) && count[steps[i].key] > 1 }, drop)
	take(lostOthers, func(i int) bool { return !isLast(i) }, drop)
	all := func(int) bool { return true }
	take(doubled, all, func(h *rig.Handling) { h.Repeat = randomDuration(rng, 20*time.Millisecond, time.Second) })
	take(delayed, all, func(h *rig.Handling) { h.Delay = randomDuration(rng, 300*time.Millisecond, 2*time.Second) })
	for i := range steps {
		steps[i].handling.Delay += randomDuration(rng, 0, 30*time.Millisecond)
	}
}

func randomDuration(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}

// awkwardNames break code that decodes keys twice or never, or that cleans keys like paths.
var awkwardNames = []string{
	"summer 2026/beach day.jpg",
	"a+b=c & d.png",
	"100%25 literal %2B plus.jpg",
	"été/Ærøskøbing – 富士山 🗻.jpg",
	"...and...dots...png",
	"/leading//slashes.jpg",
	"new\nline.png",
	`"quotes" and \back\slash.jpg`,
	"question?versionId=none#hash.jpg",
}

func photographKey(i int) string {
	if i < len(awkwardNames) {
		return inputPrefix + awkwardNames[i]
	}
	ext := "jpg"
	if i%4 == 0 {
		ext = "png"
	}
	return fmt.Sprintf("%sIMG_%04d.%s", inputPrefix, i, ext)
}
