# One line each; .ci/run has the same steps for all of it.
.PHONY: dev build test race lint format fuzz bench bench-e2e bench-floor bench-fleet frontend packages ci

dev: ; go run . dev
build: ; CGO_ENABLED=0 go build -trimpath -o adit .
test: ; go test ./...
race: ; .ci/run race
lint: ; .ci/run static
format: ; go tool -modfile=tools.mod gofumpt -w .
fuzz: ; .ci/run fuzz
bench: ; .ci/run bench
frontend: ; .ci/run frontend
bench-e2e: ; go run ./internal/bench -path loopback -path usual
bench-floor: ; go run ./internal/bench -transports direct,bare-udp,bare-tcp,bare-tls,ssh,dtls,tls \
	-only '^((tcp|http) (requests x(1|64)|new connections)|tcp (down|up) x1|udp)$$'
bench-fleet: ; go run ./internal/bench -agents 1000 -transports dtls,tls
packages: ; .ci/run packages
ci: ; .ci/run
