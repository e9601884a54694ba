# The two main commands: `make run` starts a broker, `make test` checks everything.

GO ?= go
TOOL = $(GO) tool -modfile=tools.mod
PROGRAMS = ./cmd/broker ./cmd/janitor ./cmd/switchboard

.PHONY: run demo build js test test-long check platforms install-test-tools fuzz microbench bench bench-quick bench-million bench-failures bench-rooms load faults test-deploy image packages release clean

run: ## a broker on 127.0.0.1:8080 (HTTP) and :7070 (TCP), in memory; ARGS="--insecure …" adds flags
	@echo 'Compiling the broker. The first time, this takes some minutes.'
	@$(GO) build -trimpath -o bin/ ./cmd/broker && exec bin/broker --config configs/development.yaml $(ARGS)

demo: ## a broker in memory and a page to play with: rooms, a game, seats to buy, a scene (docs/demo.md)
	@echo 'Compiling the demo. The first time, this takes some minutes.'
	@$(GO) build -trimpath -o bin/ ./cmd/demo && exec bin/demo $(ARGS)

build: ## bin/switchboard, bin/broker and bin/janitor
	$(GO) build -trimpath -o bin/ $(PROGRAMS)

js: install-test-tools ## builds the committed dist folders of the JavaScript client, the console and the demo
	for dir in client/js internal/console/web cmd/demo/web; do npm run --silent build --prefix $$dir || exit 1; done

test: check ## formatting, vet, staticcheck, words, and all tests but the long ones, with the race detector; names what it leaves out
	.ci/test

test-long: ## the long tests: end to end, attackers, faults, linearizability, benchmarks, and random tests with many seeds
	.ci/test-long

check: ## formatting, vet, staticcheck and words
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	packages=$$(.ci/packages build) && $(GO) vet -tags long $$packages && $(TOOL) staticcheck -tags long $$packages
	$(GO) run ./internal/wordcheck

platforms: ## compiles the programs, the Go client and their tests for Linux, macOS, FreeBSD and Windows
	.ci/platforms

install-test-tools: ## installs what the tests need (.ci/tools): Redis, Node.js, Chromium, PHP, Ruby, Java … (Debian, as root)
	.ci/install

fuzz: ## fuzzes each decoder for 20 seconds
	.ci/fuzz 20s

microbench: ## Go benchmarks of the hot paths
	$(GO) test -run '^$$' -bench . -benchmem ./internal/... ./queue/... ./events/... ./broker/...

bench: ## compares with other brokers and a bare write(2) loop, some 45 minutes; writes bench/REPORT.md, bench/report.json, bench/plots
	$(GO) run ./bench/suite

bench-quick: ## the same with fewer and smaller rounds, under five minutes; prints the table
	$(GO) run ./bench/suite --quick

bench-million: ## a million connections on this machine, some five minutes and 14 GiB; writes bench/MILLION.md
	$(GO) run ./bench/million --out bench/MILLION.md

bench-failures: ## counts what Redis does after the kill, the start and the end of a broker and after a failover, some 40 minutes; writes bench/failures/REPORT.md
	$(GO) run ./bench/failures --out bench/failures
	$(GO) test ./bench/failures -run TestPage -update

bench-rooms: ## rooms beside Colyseus, and holds, some six minutes; writes bench/rooms/REPORT.md
	$(GO) run ./bench/suite --only 'rooms|holds' --rounds 2 --out bench/rooms

load: ## measures a broker that it starts: connections, fan-out, memory and CPU
	$(GO) run ./bench/suite --only load --system '^(floor|switchboard memory)$$' --rounds 1

faults: ## the fault ledger, some 16 minutes: what happens to messages during faults; writes docs/faults.md
	$(GO) run ./internal/faults

test-deploy: ## the load balancers, the chart and all that make release builds, with the real programs; some 6 minutes, and 10 more the first time, for the tools
	.ci/install deploy
	$(GO) vet -tags deploy ./deploy/...
	$(TOOL) staticcheck -tags deploy ./deploy/...
	$(GO) test -tags deploy -timeout 40m ./deploy/...

image: ## the container image "switchboard", by buildah, without a registry and a daemon
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o dist/image/bin/ $(PROGRAMS)
	cp /etc/ssl/certs/ca-certificates.crt dist/image/
	buildah bud --isolation=chroot --pull-never --target=prebuilt -f deploy/Dockerfile -t switchboard dist/image

packages: ## archives, deb and rpm of all platforms in dist/, not published
	VERSION=$$(cat VERSION) $(GO) tool -modfile=deploy/tools/goreleaser.mod goreleaser release --snapshot --clean

release: ## all artifacts of the version in dist/, not published: also images, chart, JavaScript client, SBOM, checksums
	.ci/install deploy
	.ci/release

clean:
	rm -rf bin dist
