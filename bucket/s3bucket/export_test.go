package s3bucket

import "github.com/aws/aws-sdk-go-v2/service/s3"

func (s *Store) CopyPartsOf(size int64) { s.partSize = size }

func (s *Store) SendBy(c s3.HTTPClient) {
	s.client = s3.New(s.client.Options(), func(o *s3.Options) { o.HTTPClient = c })
}
