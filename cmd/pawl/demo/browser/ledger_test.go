package browser

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

const (
	bucketName = "photos"
	thumbnails = "thumbnails" // most rows are settled
	scan       = "virus-scan" // its only slot is in use
)

// hostileKeys would run a script, leave their element or damage a terminal if they were not shown as text.
var hostileKeys = []string{
	"in/" + hostile,
	`in/"><script>window.hacked=1</script>.jpg`,
	`in/' onmouseover='window.hacked=1.jpg`,
	"in/\u202egpj.exe",
	"in/../../?pipeline=other&key=a%2Fb#c.jpg",
	"in/{{.Secret}} \u00e9\u65e5\u672c .jpg",
	"in/" + string(slices.Repeat([]byte("long-"), 150)) + ".jpg",
}

// hostileName has control characters, so that S3 cannot store it.
const hostileName = "up/\x1b[31mred\x07\r\n.zip"

// hostileError is the error of the rows of hostileKeys.
const hostileError = `convert: </td><script>window.hacked=1</script> ` + "\x1b[2J" + ` & "unknown" format`

// seedLedger creates a ledger with the given number of rows, of which few are unsettled. It returns the keys of the
// objects.
func seedLedger(t testing.TB, path string, rows int) (keys []string) {
	t.Helper()
	records, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := records.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	s := &seeder{rows: ledger.NewRows(records), t: t}
	now := time.Now().UTC().Truncate(time.Second)
	for i, key := range hostileKeys {
		s.dead(thumbnails, key, now.Add(-time.Duration(26+i)*time.Hour), hostileError)
	}
	s.dead(scan, hostileName, now.Add(-25*time.Hour), hostileError)
	for i := range 30 {
		s.dead(thumbnails, fmt.Sprintf("in/2026/broken-%03d.jpg", i), now.Add(-time.Duration(40+i)*time.Minute), "unexpected EOF in JPEG data")
	}
	for i := range 25 {
		s.failed(thumbnails, fmt.Sprintf("in/2026/late-%03d.jpg", i), now.Add(-time.Duration(5+i)*time.Minute), "503 Slow Down: reduce your request rate")
	}
	for i := range 5 {
		s.stuck(scan, fmt.Sprintf("up/held-%03d.zip", i), now.Add(-time.Duration(3+i)*time.Hour))
	}
	for i := range 20 {
		s.pending(scan, fmt.Sprintf("up/new-%03d.zip", i), now.Add(-time.Duration(1+i)*time.Minute))
	}
	for i := len(s.keys); i < rows; i++ {
		s.settled(thumbnails, fmt.Sprintf("in/2026/%02d/%07d.jpg", i%12+1, i), now.Add(-time.Duration(i)*time.Second))
	}
	s.flush()
	key := store.Key{Space: "row/" + thumbnails, Name: store.Join(bucketName, "in/2026/newer-version.jpg")}
	out, err := records.Swap(t.Context(), []store.Change{{Key: key, Next: &store.Record{Key: key, Nonce: store.NewNonce(), Body: `{"v":"9.0"}`}}})
	if err != nil || !out[0].Applied {
		t.Fatal(out, err)
	}
	return s.keys
}

type seeder struct {
	t     testing.TB
	rows  *ledger.Rows
	batch []ledger.Change
	keys  []string
}

var seedPolicy = ledger.Policy{TTL: 30 * time.Second, Skew: 5 * time.Second, Attempts: 8, Base: 6 * time.Hour, Max: 6 * time.Hour, LateWriteWindow: 15 * time.Minute, RowRetention: time.Hour}

func (s *seeder) observed(pipeline, key string, at time.Time) ledger.Row {
	sequencer, err := event.ParseSequencer(fmt.Sprintf("%016X", at.UnixNano()))
	if err != nil {
		s.t.Fatal(err)
	}
	sum := md5.Sum([]byte(key)) //nolint:gosec // an ETag
	e := &event.Event{
		Object: event.Object{Bucket: bucketName, Key: key}, Kind: event.Created, Sequencer: sequencer, Time: at,
		ETag: hex.EncodeToString(sum[:]), Size: int64(len(key)), Name: "ObjectCreated:Put",
	}
	row, _ := ledger.Row{RowKey: ledger.RowKey{Pipeline: pipeline, Bucket: bucketName, Key: key}}.Observe(e, true, at.Add(400*time.Millisecond))
	return row
}

func (s *seeder) claimed(pipeline, key string, at time.Time) (ledger.Row, ledger.Claim) {
	row, claim, _ := s.observed(pipeline, key, at).Claim("worker-1", &seedPolicy, at.Add(500*time.Millisecond))
	return row, claim
}

func (s *seeder) pending(pipeline, key string, at time.Time) { s.add(s.observed(pipeline, key, at)) }

func (s *seeder) stuck(pipeline, key string, at time.Time) {
	row, _ := s.claimed(pipeline, key, at)
	s.add(row)
}

func (s *seeder) settled(pipeline, key string, at time.Time) {
	row, claim := s.claimed(pipeline, key, at)
	read := ledger.Read{Kind: event.Created, Identity: row.Want.Identity}
	row, _ = row.Complete(&claim, &ledger.Ending{Read: read}, true, &seedPolicy, at.Add(900*time.Millisecond))
	s.add(row)
}

func (s *seeder) failed(pipeline, key string, at time.Time, why string) {
	row, claim := s.claimed(pipeline, key, at)
	row, _ = row.Fail(&claim, &ledger.Ending{}, &ledger.Failure{Message: why}, 1, &seedPolicy, at.Add(900*time.Millisecond))
	s.add(row)
}

func (s *seeder) dead(pipeline, key string, at time.Time, why string) {
	row, claim := s.claimed(pipeline, key, at)
	row, _ = row.Fail(&claim, &ledger.Ending{}, &ledger.Failure{Message: why, Permanent: true}, 1, &seedPolicy, at.Add(900*time.Millisecond))
	s.add(row)
}

func (s *seeder) add(row ledger.Row) {
	row.Nonce = store.NewNonce()
	s.keys = append(s.keys, row.Key)
	if s.batch = append(s.batch, ledger.Change{Key: row.RowKey, Row: &row}); len(s.batch) == 1000 {
		s.flush()
	}
}

func (s *seeder) flush() {
	s.t.Helper()
	out, err := s.rows.Swap(s.t.Context(), s.batch)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range out {
		if !out[i].Applied {
			s.t.Fatalf("%s: %v", s.batch[i].Key, out[i].Err)
		}
	}
	s.batch = s.batch[:0]
}
