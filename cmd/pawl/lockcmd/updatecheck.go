package lockcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// checkContent rejects probable accidents: empty output, as of "true" and "sed -i", and other
// content instead of JSON.
func (o *updateOptions) checkContent(object event.Object, filter string, was, made lock.Content) error {
	name := event.Quote(filter)
	switch {
	case len(made.Body) == 0 && !was.Exists && !o.allowEmpty:
		return app.Failed(fmt.Errorf("%s printed nothing, so %s would be empty; the object is missing, so the filter read nothing; nothing was written", name, object),
			"let the filter create the first content from empty input, as jq -s '.[0] | .n += 1' does")
	case len(made.Body) == 0 && len(was.Body) > 0 && !o.allowEmpty:
		return app.Failed(fmt.Errorf("%s printed nothing, so %s would be empty: nothing was written", name, object),
			"use --allow-empty if the object should be empty")
	case len(made.Body) > 0 && o.holdsJSON(object.Key, &made) && (len(was.Body) == 0 || isJSON(was.Body)) && !isJSON(made.Body):
		return app.Failed(fmt.Errorf("%s printed output that is not JSON, but %s holds JSON: nothing was written", name, object),
			"use --content-type, for example text/plain, to store something else")
	}
	return nil
}

func (o *updateOptions) holdsJSON(key string, c *lock.Content) bool {
	if c.Headers.ContentEncoding != "" {
		return false
	}
	kind, _, err := mime.ParseMediaType(c.ContentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) ||
		strings.HasSuffix(key, ".json") && o.contentType == ""
}

func isJSON(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	for n := 0; ; n++ {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return n > 0 && errors.Is(err, io.EOF)
		}
	}
}
