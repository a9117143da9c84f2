package s3bucket

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// listingRoot is the root element of every listing. It stands within the first
// maxProlog bytes.
const (
	listingRoot = "ListBucketResult"
	maxProlog   = 64 << 10
)

var errNotListing = errors.New("the response is not a listing of a bucket (check the endpoint)")

// mustList refuses an answer that is no listing. The SDK takes any element for one,
// and nothing at all, too: a web server's page would be an empty bucket.
func requireListing(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("pawl.mustList", checkListing), middleware.After)
	})
}

// checkListing comes before the SDK reads the answer.
func checkListing(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleDeserialize(ctx, in)
	answer, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return out, metadata, err
	}
	var begin bytes.Buffer // what is read twice
	root, err := rootOf(io.TeeReader(io.LimitReader(answer.Body, maxProlog), &begin))
	switch {
	case err == nil && root == "Error" && isTampered(io.MultiReader(&begin, io.LimitReader(answer.Body, maxProlog))):
		err = errUnlistablePage
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it has no XML element", errNotListing)
	case err == nil && root != listingRoot:
		err = fmt.Errorf("%w: its root element is %q, want %s", errNotListing, root, listingRoot)
	}
	if err != nil {
		_ = answer.Body.Close() // what it has yet to say does not matter
		answer.Body = http.NoBody
		return out, metadata, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&begin, answer.Body), answer.Body}
	return out, metadata, nil
}

// errTampered is MinIO's answer to a listing if an object on the page cannot be read. Its
// status is 206, so it looks like a success to the SDK.
var errUnlistablePage = errors.New("XMinioObjectTampered: an object that is listed may be compromised")

func isTampered(answer io.Reader) bool {
	var said struct{ Code string }
	return xml.NewDecoder(answer).Decode(&said) == nil && said.Code == "XMinioObjectTampered"
}

// rootOf returns the name of an XML text's outermost element.
func rootOf(r io.Reader) (string, error) {
	d := xml.NewDecoder(r)
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local, nil
		}
	}
}
