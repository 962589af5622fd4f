# The two commands of the README are "make run" and "make test"; the rest is for people who change
# minhost. Everything is built without cgo, so that one static binary runs on any distribution.

export CGO_ENABLED = 0

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  = -s -w $(if $(VERSION),-X main.version=$(VERSION))
BUILD    = $(GO) build -trimpath -ldflags '$(LDFLAGS)'
LANES    = $(GO) run ./verify/lanes

.PHONY: build run stop test test-unit test-race test-root test-systemd test-mac test-vm test-vm-all test-apps soak bench bench-attach bench-egress bench-localhost bench-dns conformance-dns fuzz fuzz-dns lint cross fmt clean cells packages

build:
	$(BUILD) -o bin/minhost ./cmd/minhost

# The program asks for root itself (sudo, doas, run0 or pkexec) when it needs it.
run: build
	bin/minhost finalize-install --yes
	@echo
	@echo 'Try next:'
	@echo '  bin/minhost run --name web --egress deny -- curl -sS http://127.0.0.1:8080/'
	@echo '  bin/minhost run --name web -- python3 -m http.server 3000     # and again with --name api'
	@echo '  dig @127.0.0.1 -p 15353 web.min.internal'
	@echo '  bin/minhost ls; bin/minhost explain web 192.0.2.7:443; bin/minhost verify'
	@echo 'To undo all of it: make stop'

stop: build
	bin/minhost finalize-install --undo --yes --force

# Lanes: unit (no privileges), race (those under the race detector; needs gcc), root (the real kernel in namespaces of their own), systemd (whole Debian
# systems in namespaces; their roots are made once, by debootstrap, in /var/cache/minhost-lab), lint.
# REQUIRE=root,... makes a lane that cannot run a failure; REQUIRE=noskip any skipped test.
test:
	$(LANES) unit race root systemd lint

test-unit:
	$(LANES) unit

test-race:
	$(LANES) race

test-root:
	$(LANES) root

test-systemd:
	$(LANES) systemd

# The macOS half on a model of a Mac, and the mistakes that its tests must catch. Part of the lanes unit and root.
test-mac:
	$(GO) test ./darwin/... ./verify/release
	$(GO) test -count=1 -p=1 ./verify/e2e/mac ./verify/fakedarwin

# Debian's own kernels, 6.1 and 6.12, emulated: some five minutes each, and some more when the images are
# made. Needs qemu-system-x86, debootstrap, e2fsprogs, cpio, xz-utils, zstd. Not part of make test.
test-vm:
	$(LANES) vm

# That with every kernel test of tree, belt, table, own localhosts and boxes on those kernels (an hour each), and
# Debian systems with other network managers, resolvers, firewalls and inits, in namespaces.
test-vm-all:
	MINHOST_VM_ALL=1 $(LANES) vm cells

# The table of the README: what of it works today.
cells:
	$(GO) test -count=1 -timeout=60m -run 'TestCells' -v ./verify/vmlab/cells -update

# Unmodified servers and a browser in boxes: vite, redis, PostgreSQL, gRPC, a name server, chromium. The
# script installs them on Debian, vite from npm. Not part of make test.
test-apps:
	verify/e2e/apps/programs.sh $${MINHOST_LAB:-/var/cache/minhost-lab}/apps
	$(LANES) apps

# The loops of make test-root, ten times as long, and what stands for all of its kind, all of it; as root.
soak:
	MINHOST_SOAK=500 $(GO) test -count=1 -timeout=60m -run 'TestLayers|TestNeverStarted' -v ./verify/e2e/egress
	MINHOST_HISTORIES=1000 $(GO) test -count=1 -timeout=90m -run '^TestModel$$' -v ./verify/e2e/boxes
	MINHOST_SOAK=1 $(GO) test -count=1 -timeout=60m -run 'TestFaultPoints|TestClosedEverywhere|TestFailsEverywhere|TestNobodyWaits' -v ./verify/e2e/boxes
	MINHOST_CALLS=100000 $(GO) test -count=1 -timeout=30m -run 'TestCallsLeaveNothing' -v ./verify/e2e/boxes

lint:
	$(LANES) lint

# Every benchmark, one package after the other, so that none measures another; half an hour, as root.
bench:
	$(GO) test -count=1 -p=1 -timeout=60m -run '^$$' -bench . -benchmem ./...

# What a start costs: plan, attach and teardown at 0, 100 and 250 live boxes and four at once, next to the
# kernel's own part, a network namespace with a veth pair, and the CNI bridge plugin; as root.
bench-attach:
	$(GO) test -count=1 -timeout=30m -run '^$$' -bench Attach -benchtime=100x -v ./verify/bench

# What a box's packets cost, as ratios to packets without rules in the same run; as root, on cores that
# do little else.
bench-egress:
	$(GO) test -count=1 -timeout=30m -run '^$$' -bench Egress -benchtime=1x -v ./verify/bench/egress

# What an own localhost costs bind and connect, next to a network namespace, as ratios to none; as root.
bench-localhost:
	$(GO) test -count=1 -timeout=30m -run '^$$' -bench Localhost -benchtime=1x -v ./verify/bench/localhost

# The answerer beside other name servers. The first measures and needs two cores that do little
# else, the second compares answers; peers.sh installs the others on Debian. As root the first measures too
# what the host's queries take while a box floods, and what lookups by every resolver that is here take.
bench-dns:
	verify/dnsconf/peers.sh
	$(GO) test -run '^$$' -bench Answer -benchmem ./resolverd
	$(GO) run ./verify/benchdns
	$(GO) test -run '^$$' -bench . -benchtime=1x ./resolverd/kerneltest ./verify/e2e/answerer

conformance-dns:
	verify/dnsconf/peers.sh
	$(GO) run ./verify/dnsconf

# What the answerer reads from others, an hour in all. The seeds run in "make test".
FUZZTIME ?= 12m
fuzz-dns:
	$(GO) test -run '^$$' -fuzz '^FuzzAnswer$$' -fuzztime $(FUZZTIME) ./resolverd
	$(GO) test -run '^$$' -fuzz '^FuzzFastSlow$$' -fuzztime $(FUZZTIME) ./resolverd
	$(GO) test -run '^$$' -fuzz '^FuzzStream$$' -fuzztime $(FUZZTIME) ./resolverd
	$(GO) test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME) ./resolverd/zonefile
	$(GO) test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME) ./resolverd/report

# What callers and the store give the helper, five minutes each. The seeds run in "make test".
fuzz: FUZZTIME = 5m
fuzz:
	for f in $$($(GO) test -list '^Fuzz' ./installer/helper | grep ^Fuzz); do $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) ./installer/helper || exit 1; done
	$(GO) test -run '^$$' -fuzz '^FuzzStrict$$' -fuzztime $(FUZZTIME) ./installer/api
	$(GO) test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME) ./installer/lease

cross:
	GOOS=linux  GOARCH=amd64 $(BUILD) -o dist/minhost-linux-amd64  ./cmd/minhost
	GOOS=linux  GOARCH=arm64 $(BUILD) -o dist/minhost-linux-arm64  ./cmd/minhost
	GOOS=darwin GOARCH=amd64 $(BUILD) -o dist/minhost-darwin-amd64 ./cmd/minhost
	GOOS=darwin GOARCH=arm64 $(BUILD) -o dist/minhost-darwin-arm64 ./cmd/minhost

# Packages for Debian and Fedora, into dist/. The version must be one that they can compare. Tested by
# verify/vmlab/hosts TestPackage, where nfpm is in PATH.
NFPM ?= $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0
PACKAGE_VERSION ?= 0.0.1
packages: cross
	for arch in amd64 arm64; do for kind in deb rpm; do \
		VERSION=$(PACKAGE_VERSION) ARCH=$$arch PROGRAM=dist/minhost-linux-$$arch $(NFPM) package -f packaging/nfpm.yaml -p $$kind -t dist/ || exit 1; \
	done; done

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin dist
