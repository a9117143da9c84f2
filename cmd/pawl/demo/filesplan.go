package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
)

type clientFile struct {
	key      string // idempotency key
	kind     fileKind
	picture  *picture
	handling rig.Handling

	body []byte
	rig.Promise
	// id is empty until the upload has begun.
	id string
	// stored is set if the bucket should have the file's bytes.
	state  files.State
	stored bool
}

type fileKind int

const (
	uploaded     fileKind = iota // only uploaded
	refused                      // wrong PUTs before the upload, and a second PUT after it
	repeated                     // the request is repeated before and after the upload
	completed                    // the notification is lost; the client sends a complete request
	unnotified                   // the notification is lost
	deletedSoon                  // before a copy of its notification arrives
	deletedEarly                 // before its bytes arrive
	undeleted
	interrupted
	proxied // uploaded through the service, at the second attempt
)

// fileKinds has the number of files of each kind.
var fileKinds = map[fileKind]int{uploaded: 10, refused: 4, repeated: 3, completed: 3, unnotified: 3, deletedSoon: 4, deletedEarly: 2, undeleted: 4, interrupted: 3, proxied: 3}

func filesPlan(seed uint64) []*clientFile {
	rng := rand.New(rand.NewPCG(seed, 0x66696c6573))
	var all []*clientFile
	for t := uploaded; t <= proxied; t++ {
		for range fileKinds[t] {
			all = append(all, &clientFile{kind: t})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, a := range all {
		a.key = fmt.Sprintf("picture-%d", i)
		name := a.key + ".jpg"
		if rng.IntN(4) == 0 {
			name = a.key + ".png"
		}
		a.picture = newPicture(rng, name)
		a.picture.width, a.picture.height = a.picture.width/2, a.picture.height/2
		a.handling = filesHandling(rng, a.kind)
	}
	return all
}

func filesHandling(rng *rand.Rand, t fileKind) rig.Handling {
	chance := rng.IntN(3)
	switch {
	case t == completed || t == unnotified:
		return rig.Handling{Drop: true}
	case t == deletedSoon || t == deletedEarly:
		return rig.Handling{Repeat: randomDuration(rng, time.Second, 2*time.Second)}
	case chance == 0:
		return rig.Handling{Delay: randomDuration(rng, rig.DelayThreshold, time.Second)}
	case chance == 1:
		return rig.Handling{Repeat: randomDuration(rng, 20*time.Millisecond, time.Second)}
	}
	return rig.Handling{}
}

func (a *clientFile) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{a.key}, args...)...)
}

func (a *clientFile) draw() (err error) {
	if a.body, err = a.picture.file(); err != nil {
		return err
	}
	a.Promise = rig.NewPromise(filesEntity, a.picture.contentType(), a.body)
	return nil
}
