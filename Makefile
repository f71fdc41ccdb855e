# Everything here needs Go and nothing else.
.DEFAULT_GOAL := help
.PHONY: help build test race lint bench fuzz ci

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/flowctl
	CGO_ENABLED=0 go build -trimpath -o bin/flowctl ./cmd/flowctl

test: ## Run the tests
	go test ./...

race: ## Run the tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race ./...

lint: ## Check formatting and vet
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these files"; exit 1; }
	go vet ./...

bench: ## Run the benchmarks; ratios against the yardsticks of the same run are what counts
	CGO_ENABLED=0 go test -run '^$$' -bench . ./...

fuzz: ## Fuzz each parser for 20 s
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime 20s $$pkg || exit 1; \
	  done; \
	done

ci: ## What the CI runs
	bash .ci/run
