module github.com/pawlhq/pawl/bench

go 1.26.0

require (
	github.com/aws/aws-lambda-go v1.55.1
	github.com/pawlhq/pawl v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)

replace github.com/pawlhq/pawl => ..
