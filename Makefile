# Each target is a go command or a few; `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help test lint bench fuzz soak nightly mutation build demo fmt site release release-check

PKG  ?= ./event
FUZZ ?= FuzzDetect
TIME ?= 30s
SCALE ?= 1
export SCALE VERSION

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/'

test: ## vet and test against real servers, built once
	go run ./tools/test

lint: ## check formatting and run golangci-lint
	go run ./tools/test -lint

bench: ## run the benchmarks that CONTRIBUTING.md names, and print one table
	{ go test ./proof/e2e -run '^$$' -bench BenchmarkCycle -benchtime 5x; \
	go test ./proof/e2e -run '^$$' -bench 'BenchmarkReplay|BenchmarkAudit|BenchmarkArchiveRate|BenchmarkFiles' -benchtime 1x -filerows 1000000 -timeout 1h; \
	go test ./bucket -run '^$$' -bench BenchmarkCopy -benchtime 5x; \
	go test ./store/sqlite ./store/postgres ./audit/inventory -run '^$$' -bench . -benchmem; \
	go test ./store/dynamo -run '^$$' -bench . -benchtime 1x -timeout 1h; \
	go -C cmd/pawl/demo/browser test . -run '^$$' -bench . -benchtime 5x; \
	cd bench && go test -run '^$$' -bench . -benchmem -timeout 1h .; } 2>&1 | go -C bench run ./table

fuzz: ## fuzz one target: make fuzz PKG=./event FUZZ=FuzzDetect TIME=1m
	go test -run '^$$' -fuzz '^$(FUZZ)$$' -fuzztime $(TIME) $(PKG)

soak: ## kill and stop real workers, 1,000 and 200 times
	go test ./proof/e2e -run TestKills -v -count=1 -timeout 3h -rounds 10 -kills 50 -stops 10

nightly: ## millions of worlds, all mutants, kills, all fuzz targets: make nightly SCALE=0.01
	go run ./tools/test -nightly -scale "$$SCALE"

mutation: ## change event, ledger and engine, and count the changes that tests notice
	go run ./tools/mutation

build: ## build bin/pawl
	go build -trimpath -o bin/pawl ./cmd/pawl

demo: ## see it work, with nothing else installed
	go run ./cmd/pawl demo

fmt: ## format the source
	go fmt ./...

release: ## build the files of a release into dist/: make release VERSION=0.1.0, default the tag of this commit
	release/release.sh

release-check: ## build a release of this commit twice, install it, and check images, charts, workflows and the site
	go test -count=1 ./deploy
	cd release/check && go test -count=1 -v -timeout 2h ./...

site: ## build the documentation site into dist/site
	go run ./tools/site
