package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// memory is a Keeper in memory.
type memory struct {
	mu     sync.Mutex
	rev    uint64
	values map[string][]byte
	revs   map[string]uint64
}

func newMemory() *memory { return &memory{values: map[string][]byte{}, revs: map[string]uint64{}} }

func (m *memory) Get(key string) ([]byte, uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[key]
	return v, m.revs[key], ok
}

func (m *memory) Put(_ context.Context, key string, value []byte, revision uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revs[key] != revision {
		return false, nil
	}
	m.rev++
	m.values[key], m.revs[key] = value, m.rev
	return true, nil
}

func (m *memory) Remove(_ context.Context, key string, revision uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rev, ok := m.revs[key]; ok && rev != revision {
		return false, nil
	}
	delete(m.values, key)
	delete(m.revs, key)
	return true, nil
}

func (m *memory) List(prefix string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := maps.Clone(m.values)
	maps.DeleteFunc(found, func(key string, _ []byte) bool { return !strings.HasPrefix(key, prefix) })
	return found
}

var fakeTime = time.Date(2026, 5, 4, 10, 20, 30, 0, time.UTC)

// fakeRelay answers everything; fail makes it break.
type fakeRelay struct {
	mu       sync.Mutex
	fail     error
	counters Counters
	noted    []string
	away     error // of BeginChange

	condition string // of the store; if empty, here
}

func (f *fakeRelay) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *fakeRelay) Status() Status {
	return Status{State: "ok", Store: "here", Version: "v1", Node: "n1", Domain: "relay.test", StartedAt: fakeTime, Sessions: 3}
}

func (f *fakeRelay) Clients() []Client {
	return []Client{{Name: "shop", ClientID: "c_1", CreatedAt: fakeTime, State: "active", Usage: Usage{Month: "2026-05", State: "ok"}, Tokens: []Token{{Hint: "ab", CreatedAt: fakeTime}}}}
}

func (f *fakeRelay) CreateClient(_ context.Context, name string, _ Scope) (NewToken, error) {
	return NewToken{name, "c_1", "adit_x"}, f.err()
}

func (f *fakeRelay) NewClientToken(_ context.Context, name string, _ time.Duration) (NewToken, error) {
	return NewToken{name, "c_1", "adit_x"}, f.known(name)
}
func (f *fakeRelay) DropClient(_ context.Context, name string) error { return f.known(name) }

func (f *fakeRelay) known(name string) error {
	if name == "nobody" {
		return &Error{http.StatusNotFound, "not_found", "there is no " + name, ""}
	}
	return f.err()
}

func (f *fakeRelay) SessionList() []Session {
	return []Session{{ID: "s_1", Since: fakeTime, Errors: []wire.AgentError{{Time: fakeTime, Key: "k", Message: "m"}}}}
}

func (f *fakeRelay) EndpointList() []Endpoint {
	return []Endpoint{{ID: "e_1", Target: "shop.relay.test", Type: "https", Mode: "standard", Clients: []string{"shop"}, Visitors: []string{}, Since: fakeTime, Connections: Connections{Open: 2}}}
}

func (f *fakeRelay) ClaimList() []Claim {
	return []Claim{{Target: "shop.relay.test", CreatedAt: fakeTime}}
}

func (f *fakeRelay) ReleaseClaim(_ context.Context, target string) error { return f.known(target) }

func (f *fakeRelay) EndSignIns(_ context.Context, user string) (EndedSignIns, error) {
	return EndedSignIns{User: user, EndedAt: fakeTime}, f.err()
}

func (f *fakeRelay) policy(target string) Policy {
	return Policy{Target: target, ChangedAt: fakeTime, Policy: policy.Document{Deny: []string{"1.2.3.4"}, BasicAuth: []policy.User{{Name: "a"}}}}
}
func (f *fakeRelay) PolicyList() []Policy { return []Policy{f.policy("shop.relay.test")} }
func (f *fakeRelay) Policy(target string) (Policy, error) {
	return f.policy(target), f.known(target)
}

func (f *fakeRelay) SetPolicy(_ context.Context, target string, _ []byte, e Expected) (Policy, error) {
	if e != nil && !e("1") {
		return Policy{}, &Error{http.StatusPreconditionFailed, "precondition_failed", "another one is there", ""}
	}
	return f.policy(target), f.known(target)
}

func (f *fakeRelay) DeletePolicy(_ context.Context, target string, e Expected) error {
	_, err := f.SetPolicy(context.Background(), target, nil, e)
	return err
}

func (f *fakeRelay) Explain(q Question) (Explanation, error) {
	steps := []policy.Step{{Rule: "deny", Detail: "x"}}
	if q.Password != "" {
		steps = append(steps, policy.Step{Rule: "basic_auth", Refuses: q.Password != testPass, Detail: "the password is checked"})
	}
	return Explanation{Target: q.Target, Node: "n1", Steps: steps}, f.err()
}

func (f *fakeRelay) Counters() Counters {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counters
}
func (f *fakeRelay) Metrics() string { return "adit_relay_ready 1\n" }
func (f *fakeRelay) Backup(context.Context) (any, error) {
	return map[string]any{"format": "adit-relay-backup", "version": 1, "schema": 1, "created": fakeTime, "settings": 1, "clients": 1, "claims": 1, "policies": 1}, f.err()
}
func (f *fakeRelay) Ready() string { return "" }

func (f *fakeRelay) StoreCondition() string { return cmp.Or(f.condition, "here") }

func (f *fakeRelay) BeginChange(context.Context, string) (func(error), error) {
	return func(error) {}, f.away
}

func (f *fakeRelay) Record(ctx context.Context, action, target string, _ any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noted = append(f.noted, fmt.Sprintf("%s %s by %s %s", action, target, auditActor(ctx).Kind, auditActor(ctx).Name))
}

const (
	testToken = "adit_admin_0123456789"
	testCode  = "AAAA-BBBB-CCCC-DDDD"
	testPass  = "correct horse battery"
)

// running is a console with browsers that ask it.
type running struct {
	*Console
	t     *testing.T
	url   string
	relay *fakeRelay
	keep  *memory
}

func serve(t *testing.T) *running {
	t.Helper()
	r := &running{t: t, relay: &fakeRelay{}, keep: newMemory()}
	c, err := New(Config{
		Relay: r.relay, Keeper: r.keep, AdminToken: testToken, SetupCode: testCode, hashMemory: 64,
		Page: fstest.MapFS{"index.html": {Data: []byte("<!doctype html><title>adit</title>")}, "assets/a-12345678.js": {Data: []byte("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	r.Console, r.url = c, server.URL
	return r
}

// browser is what asks: with a cookie, or a token.
type browser struct {
	r      *running
	token  string
	cookie *http.Cookie
	header http.Header
}

func (b *browser) send(method, path, body string) (*http.Response, []byte) {
	b.r.t.Helper()
	req, err := http.NewRequestWithContext(b.r.t.Context(), method, b.r.url+path, strings.NewReader(body))
	if err != nil {
		b.r.t.Fatal(err)
	}
	maps.Copy(req.Header, b.header)
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	if b.cookie != nil {
		req.AddCookie(b.cookie)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.r.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.r.t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if strings.HasSuffix(c.Name, cookieName) {
			b.cookie = c
		}
	}
	return resp, answer
}

// want asks and returns what is in the envelope.
func (b *browser) want(status int, method, path, body string) map[string]any {
	b.r.t.Helper()
	resp, answer := b.send(method, path, body)
	if resp.StatusCode != status {
		b.r.t.Fatalf("%s %s: got status %d, want %d: %s", method, path, resp.StatusCode, status, answer)
	}
	var v struct {
		Data  map[string]any `json:"data"`
		Error map[string]any `json:"error"`
	}
	if len(answer) > 0 {
		if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&v); err != nil {
			b.r.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	if v.Error != nil {
		return v.Error
	}
	return v.Data
}

// owner sets the console up and returns its first administrator's browser.
func (r *running) owner() *browser {
	r.t.Helper()
	b := &browser{r: r}
	b.want(200, "POST", "/api/v1/setup", `{"code":"`+testCode+`","name":"ann","password":"`+testPass+`"}`)
	return b
}

var errFire = errors.New("the disk is on fire at /secret")

var fakeVisit = wire.Access{Time: fakeTime, Endpoint: "e_1", Visitor: "192.0.2.1", Status: 200}

func (f *fakeRelay) Client(name string) (Client, error) {
	c := f.Clients()[0]
	c.Proof = &Record{"_adit.DOMAIN", "adit-client=x"}
	c.Seen = &store.Seen{At: fakeTime, Node: "n1", Address: "192.0.2.1:1", Transport: "dtls"}
	c.Errors = []ClientError{{store.ClientError{Time: fakeTime, Message: "m", Node: "n1"}, "https://shop.relay.test"}}
	return c, f.known(name)
}

func (f *fakeRelay) SetClient(_ context.Context, name string, _ Scope, _ Expected) (Client, error) {
	return f.Clients()[0], f.known(name)
}

func (f *fakeRelay) Access(context.Context, Access) (AccessPage, error) {
	return AccessPage{Items: []wire.Access{fakeVisit}, Next: "c", Complete: false}, f.err()
}

func (f *fakeRelay) ExportAccess(_ context.Context, _ Access, give func(*wire.Access) error) error {
	e := fakeVisit
	return give(&e)
}

func (f *fakeRelay) FollowAccess(_ context.Context, _ Access, give func([]wire.Access, int) error) error {
	return give([]wire.Access{fakeVisit}, 0)
}

func (f *fakeRelay) AuditList(context.Context, AuditQuestion) (AuditPage, error) {
	return AuditPage{Items: []audit.Entry{{Seq: 2, Time: fakeTime, Actor: Actor{Kind: KindUser, Name: "ann"}, Action: "client.add", Prev: "a", Hash: "b"}}, Next: 2}, f.err()
}

func (f *fakeRelay) AuditVerify(context.Context, string) (audit.Result, error) {
	return audit.Result{OK: true, Entries: 2, Head: "b"}, f.err()
}

func (f *fakeRelay) AuditExport(_ context.Context, give func(audit.Entry) error) error {
	return give(audit.Entry{Seq: 1, Time: fakeTime})
}

func (f *fakeRelay) sink(name string) Sink {
	return Sink{Name: name, Type: "webhook", URL: "https://siem.example/in?key=s3cret", Events: []string{"access"}, ChangedAt: fakeTime, State: SinkState{Node: "n1"}}
}
func (f *fakeRelay) SinkList() []Sink               { return []Sink{f.sink("siem")} }
func (f *fakeRelay) Sink(name string) (Sink, error) { return f.sink(name), f.known(name) }
func (f *fakeRelay) SetSink(_ context.Context, name string, _ []byte, _ Expected) (Sink, error) {
	return f.sink(name), f.known(name)
}

func (f *fakeRelay) DeleteSink(_ context.Context, name string, _ Expected) error {
	return f.known(name)
}

func (f *fakeRelay) TestSink(_ context.Context, name string) (SinkTest, error) {
	return SinkTest{OK: false, Error: "refused"}, f.known(name)
}

func (f *fakeRelay) DomainList(context.Context) []Domain {
	return []Domain{{
		Domain: "shop.relay.test", Client: "shop", ClientID: "c_1", ProvedAt: &fakeTime,
		Certificate: &Certificate{Source: CertificateACME, Issuer: "A", NotAfter: &fakeTime, Error: "e"},
	}}
}

func (f *fakeRelay) ErrorList() []ReportedError {
	return []ReportedError{{ClientError: ClientError{store.ClientError{Time: fakeTime, Key: "k", Message: "m", Node: "n1"}, "https://shop.relay.test"}, Client: "shop", ClientID: "c_1"}}
}

func (f *fakeRelay) Settings(context.Context) (Settings, error) {
	return Settings{SignIn: SignInSettings{CallbackURL: "https://sign-in.relay.test/callback", Providers: []SignInProvider{{Name: "company", Type: "oidc", Issuer: "https://login.example.com"}}}, Node: "n1", Domain: "relay.test", Limits: map[string]any{"sessions": 1}}, f.err()
}

func (f *fakeRelay) NodeList() []Node {
	return []Node{{ID: "n_1", Name: "n1", StartedAt: fakeTime, Self: true}}
}
