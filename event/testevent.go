package event

import "github.com/go-json-experiment/json"

// S3 and versitygw send a test event when notifications are configured. A test event has no
// eventSource.
func (p *parser) parseTestEvent(payload []byte) error {
	var doc struct {
		Service string `json:"Service"`
		Event   string `json:"Event"`
	}
	if err := json.Unmarshal(payload, &doc); err != nil {
		return err
	}
	if doc.Event != "s3:TestEvent" {
		return p.unknownDialect("Event %s is not s3:TestEvent", quoteShort(doc.Event))
	}
	if p.requested == Detect {
		p.batch.Dialect = AWS
		if doc.Service == "S3" { // AWS writes "Amazon S3"
			p.batch.Dialect = VersityGW
		}
	}
	p.batch.Test = true
	return nil
}
