package config

// Image makes another picture of a picture.
type Image struct {
	// Where the picture goes: s3://bucket/prefix/. Its key is that prefix,
	// then the input's key after the matched prefix, then the suffix.
	To Location `yaml:"to" jsonschema:"required"`
	// What the output's key ends with, after the input's.
	Suffix string `yaml:"suffix"`
	// Drop the colours.
	Grayscale bool `yaml:"grayscale"`
	// Shrink to fit this width, in pixels. Default: as wide as it is.
	Width int `yaml:"width"`
	// Shrink to fit this height, in pixels. Default: as high as it is.
	Height int `yaml:"height"`
	// Output format. Default: jpeg for JPEG, png for all others.
	Format string `yaml:"format" jsonschema:"enum=jpeg,enum=png"`
	// Quality of a JPEG, 1 to 100. Default: 85.
	Quality int `yaml:"quality"`
	// Pictures with more pixels are refused. Default: 25000000.
	MaxPixels int `yaml:"max_pixels"`
	// Files that are larger are refused. Default: 64MiB.
	MaxBytes Size `yaml:"max_bytes"`
}

// Copy copies the object.
type Copy struct {
	// Where the copy goes: s3://bucket/prefix/. Its key is that prefix, then
	// the input's key after the matched prefix.
	To Location `yaml:"to" jsonschema:"required"`
}

// Exec runs a program with the object on its standard input.
type Exec struct {
	// The program and its arguments. No shell is involved.
	Command []string `yaml:"command" jsonschema:"required,minItems=1"`
	// Where its standard output goes: s3://bucket/prefix/. Default: nowhere.
	To Location `yaml:"to"`
	// What the output's key ends with, after the input's.
	Suffix string `yaml:"suffix"`
	// Media type of the output. Default: application/octet-stream.
	ContentType string `yaml:"content_type"`
	// What it gets to see of the environment besides PAWL_… and the likes of
	// PATH: NAME=value sets a variable, NAME passes on Pawl's own.
	Env []string `yaml:"env"`
	// How long it may run. Default: 10m.
	Timeout Duration `yaml:"timeout"`
}

// HTTP posts a description of the object to a web service.
type HTTP struct {
	// URL to post to.
	URL string `yaml:"url" jsonschema:"required"`
	// The key of the Standard Webhooks signature, "whsec_…". Default: requests
	// are not signed.
	Secret Secret `yaml:"secret"`
	// How long an answer may take. Default: 30s.
	Timeout Duration `yaml:"timeout"`
}
