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

// listingRoot must be within the first maxProlog bytes.
const (
	listingRoot = "ListBucketResult"
	maxProlog   = 64 << 10
)

var errNotListing = errors.New("the response is not a listing of a bucket (check the endpoint)")

// requireListing rejects a response that is not a listing. The SDK accepts any XML, so the page
// of a web server would look like an empty bucket.
func requireListing(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("pawl.mustList", checkListing), middleware.After)
	})
}

func checkListing(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleDeserialize(ctx, in)
	answer, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return out, metadata, err
	}
	var begin bytes.Buffer
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
		_ = answer.Body.Close()
		answer.Body = http.NoBody
		return out, metadata, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&begin, answer.Body), answer.Body}
	return out, metadata, nil
}

// errUnlistablePage is the error of MinIO if it cannot read an object of the page. Its status is
// 206, which the SDK treats as a success.
var errUnlistablePage = errors.New("XMinioObjectTampered: an object that is listed may be compromised")

func isTampered(answer io.Reader) bool {
	var said struct{ Code string }
	return xml.NewDecoder(answer).Decode(&said) == nil && said.Code == "XMinioObjectTampered"
}

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
