package event

import "github.com/go-json-experiment/json"

// A topic without raw delivery sends the notification as a string in an envelope.
//
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
func (p *parser) parseSNS(payload []byte) error {
	if p.wrapped {
		return p.malformed("an SNS message inside an SNS message")
	}
	var envelope struct {
		Type    string `json:"Type"`
		Message string `json:"Message"`
	}
	if err := json.Unmarshal(payload, &envelope); err != nil {
		return err
	}
	switch envelope.Type {
	case "Notification":
		p.wrapped = true
		return p.parse([]byte(envelope.Message))
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		if p.requested == Detect {
			p.batch.Dialect = AWS
		}
		p.batch.Test = true
		return nil
	}
	return p.unknownDialect("SNS message of type %s", quoteShort(envelope.Type))
}
