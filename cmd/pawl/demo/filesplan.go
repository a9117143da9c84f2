package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
)

// act is the story of one file.
type act struct {
	key     string // idempotency key
	tale    tale
	picture *picture
	// handling is that of the notification about its object.
	handling rig.Handling

	body []byte
	rig.Promise
	// id is empty until the upload has begun.
	id string
	// state is that in which the file should be, and kept whether its bytes should be
	// in the bucket.
	state files.State
	kept  bool
}

// tale is what happens to a file.
type tale int

const (
	uploaded   tale = iota // and nothing else
	refused                // wrong PUTs come first, and one comes again
	repeated               // the client asks twice, before and after the upload
	completed              // its notification is lost, and the client says that it has sent
	unheard                // its notification is lost
	withdrawal             // deleted, before a copy of its notification comes
	early                  // deleted before its bytes come
	regretted              // deleted and brought back
	broken                 // its upload breaks off
	passed                 // sent through the service, the first time in vain
)

// filesCast says how many files have which tale.
var filesCast = map[tale]int{uploaded: 10, refused: 4, repeated: 3, completed: 3, unheard: 3, withdrawal: 4, early: 2, regretted: 4, broken: 3, passed: 3}

// filesPlan writes the play: everything in it follows from the seed.
func filesPlan(seed uint64) []*act {
	rng := rand.New(rand.NewPCG(seed, 0x66696c6573))
	var acts []*act
	for t := uploaded; t <= passed; t++ {
		for range filesCast[t] {
			acts = append(acts, &act{tale: t})
		}
	}
	rng.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	for i, a := range acts {
		a.key = fmt.Sprintf("picture-%d", i)
		name := a.key + ".jpg"
		if rng.IntN(4) == 0 {
			name = a.key + ".png"
		}
		a.picture = newPicture(rng, name)
		a.picture.width, a.picture.height = a.picture.width/2, a.picture.height/2
		a.handling = filesHandling(rng, a.tale)
	}
	return acts
}

// filesHandling draws the fault of the notification that an object is there.
func filesHandling(rng *rand.Rand, t tale) rig.Handling {
	chance := rng.IntN(3)
	switch {
	case t == completed || t == unheard:
		return rig.Handling{Drop: true}
	case t == withdrawal || t == early:
		return rig.Handling{Repeat: between(rng, time.Second, 2*time.Second)}
	case chance == 0:
		return rig.Handling{Delay: between(rng, rig.Late, time.Second)}
	case chance == 1:
		return rig.Handling{Repeat: between(rng, 20*time.Millisecond, time.Second)}
	}
	return rig.Handling{}
}

func (a *act) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{a.key}, args...)...)
}

// draw makes the file.
func (a *act) draw() (err error) {
	if a.body, err = a.picture.file(); err != nil {
		return err
	}
	a.Promise = rig.NewPromise(filesEntity, a.picture.contentType(), a.body)
	return nil
}
