package relay

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/sink"
	"adit/tunnel/wire"
)

// answer sends a request as the administrator, and returns the contents of the envelope.
func answer[T any](tb testing.TB, r *testRelay, method, path, body string) T {
	tb.Helper()
	status, text, _ := r.ask(tb, method, path, body, map[string]string{"Authorization": "Bearer " + r.AdminToken()})
	var v struct{ Data T }
	if err := json.Unmarshal([]byte(text), &v); err != nil || status/100 != 2 {
		tb.Fatalf("%s %s: status %d, %s", method, path, status, text)
	}
	return v.Data
}

// fill puts events into the log as if visitors had come.
func fill(r *testRelay, n int) time.Time {
	start := time.Now().Add(-time.Duration(n) * time.Second).UTC().Truncate(time.Second)
	for i := range n {
		r.access.Add(wire.Access{
			Time: start.Add(time.Duration(i) * time.Second), Node: r.node, Endpoint: "ep_1", Visitor: fmt.Sprintf("203.0.113.%d", i%250), Country: []string{"DE", "US-CA", ""}[i%3], User: []string{"", "Ann@example.com", "bob"}[i%3],
			Method: "GET", Host: "shop.relay.test", Path: fmt.Sprintf("/p%d", i), Status: []int{200, 404}[i%2], Refused: []string{"", "deny", "shadow:rate", ""}[i%4],
		})
		if i%2000 == 1999 {
			r.access.Flush()
		}
	}
	return start
}

func TestWholeAccessLogIsSearched(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	const n = 12_000 // more than any page, or what was once kept in memory
	start := fill(r, n)
	at := func(i int) string { return start.Add(time.Duration(i) * time.Second).Format(time.RFC3339) }
	for query, want := range map[string]int{
		"path=/p7&status=404":                     (1 + 5 + 50 + 500), // odd ones of p7, p70-, p700-, p7000-
		"since=" + at(100) + "&until=" + at(199):  100,
		"user=ann@Example.com&until=" + at(299):   100,
		"country=us&until=" + at(299):             100,
		"country=US-CA&until=" + at(299):          100,
		"country=none&until=" + at(299):           100,
		"address=203.0.113.0/31&until=" + at(249): 2,
		"refused=any&until=" + at(399):            100,
		"refused=shadow&until=" + at(399):         100,
		"refused=none&until=" + at(399):           200,
		"refused=shadow:rate&until=" + at(399):    100,
		"host=SHOP.relay.test&until=" + at(9):     10,
		"host=other":                              0,
		"node=other":                              0,
		"method=post":                             0,
	} {
		seen, cursor := map[string]bool{}, ""
		last := time.Now().Add(time.Hour)
		for complete := false; !complete; {
			page := answer[console.AccessPage](t, r, "GET", "/api/v1/access?limit=300&"+query+"&cursor="+cursor, "")
			for _, e := range page.Items {
				if seen[e.ID] || e.Time.After(last) {
					t.Fatalf("%s: event %s comes twice or out of order", query, e.ID)
				}
				seen[e.ID], last = true, e.Time
			}
			complete, cursor = page.Complete, page.Next
			if !complete && cursor == "" {
				t.Fatalf("%s: neither complete nor a cursor", query)
			}
		}
		if len(seen) != want {
			t.Errorf("%s: %d events, want %d", query, len(seen), want)
		}
	}
	if status, body, _ := r.ask(t, "GET", "/api/v1/access?cursor=x", "", map[string]string{"Authorization": "Bearer " + r.AdminToken()}); status != 400 || !strings.Contains(body, "cursor") {
		t.Errorf("a bad cursor: %d, %s", status, body)
	}
}

func TestAccessLogIsExported(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	fill(r, 2000)
	r.access.Add(wire.Access{Time: time.Now().UTC(), Visitor: "203.0.113.1", User: "=ann", Path: "=cmd|' /C calc'!A1", Host: `a,"b`})
	header := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	status, body, h := r.ask(t, "GET", "/api/v1/access/export?format=csv", "", header)
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if status != 200 || err != nil || len(rows) != 2002 || !strings.Contains(h.Get("Content-Disposition"), ".csv") {
		t.Fatalf("status %d, %d rows, %v, %v", status, len(rows), err, h)
	}
	if row := strings.Join(rows[1], "|"); !strings.Contains(row, "'=cmd") || !strings.HasSuffix(row, "|'=ann") || !strings.Contains(row, `a,"b`) {
		t.Errorf("the newest row: %s", row)
	}
	status, body, _ = r.ask(t, "GET", "/api/v1/access/export?status=404&limit=7", "", header)
	lines := bufio.NewScanner(strings.NewReader(body))
	count := 0
	for ; lines.Scan(); count++ {
		var e wire.Access
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Status != 404 || e.ID == "" {
			t.Fatalf("line %d: %s, %v", count, lines.Text(), err)
		}
	}
	if status != 200 || count != 7 {
		t.Errorf("status %d, %d lines", status, count)
	}
	if status, body, _ := r.ask(t, "GET", "/api/v1/access/export?format=csv&host=nobody.example", "", header); status != 200 || strings.Count(body, "\r\n") != 1 {
		t.Errorf("of no events: status %d, %q, want the names of the columns alone", status, body)
	}
	for _, path := range []string{"?format=xml", "?nothing=1", "?address=here", "?format=csv&address=here"} {
		if status, _, _ := r.ask(t, "GET", "/api/v1/access/export"+path, "", header); status != 400 {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

func TestAccessEventsComeLive(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+r.Addrs().Console+"/api/v1/access/live?path=/wanted", nil)
	req.Header.Set("Authorization", "Bearer "+r.AdminToken())
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if media := resp.Header.Get("Content-Type"); media != "text/event-stream" {
		t.Fatalf("media %q", media)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != ": begun" {
	}
	r.access.Add(wire.Access{Time: time.Now().UTC(), Path: "/other"})
	r.access.Add(wire.Access{Time: time.Now().UTC(), Path: "/wanted"})
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if !strings.Contains(text, "/wanted") {
			t.Errorf("got %s", text)
		}
		return
	}
	t.Error("no event came:", lines.Err())
}

func TestEveryChangeIsInTheAuditLog(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/v1/clients", `{"name":"shop","scope":{"tunnels":3}}`},
		{"PATCH", "/api/v1/clients/shop", `{"scope":{"tunnels":4}}`},
		{"POST", "/api/v1/clients/shop/rotate", ""},
		{"PUT", "/api/v1/policies/shop", `{"basic_auth":[{"name":"ann","password":"hush-hush"}]}`},
		{"PUT", "/api/v1/sinks/siem", `{"type":"webhook","url":"https://siem.example.com/x","secret":"hush-hush"}`},
		{"GET", "/api/v1/backup", ""},
		{"DELETE", "/api/v1/sinks/siem", ""},
		{"DELETE", "/api/v1/policies/shop", ""},
		{"POST", "/api/v1/clients/shop/revoke", ""},
		{"PATCH", "/api/v1/clients/nobody", `{"scope":{}}`}, // not done: not in the log
	} {
		r.ask(t, c.method, c.path, c.body, map[string]string{"Authorization": "Bearer " + r.AdminToken()})
	}
	want := "client.revoke policy.delete sink.delete backup.read sink.set policy.set client.rotate client.set client.add"
	var got []string
	var next uint64
	for {
		path := "/api/v1/audit?limit=4"
		if next != 0 {
			path += fmt.Sprintf("&before=%d", next)
		}
		page := answer[console.AuditPage](t, r, "GET", path, "")
		for _, e := range page.Items {
			got = append(got, e.Action)
			if text, _ := json.Marshal(e); strings.Contains(string(text), "hush") || strings.Contains(string(text), "adit_") || strings.Contains(string(text), "$2a$") {
				t.Errorf("a secret is in the log: %s", text)
			}
		}
		if next = page.Next; next == 0 {
			break
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if page := answer[console.AuditPage](t, r, "GET", "/api/v1/audit?action=client.&target=shop", ""); len(page.Items) != 4 {
		t.Errorf("%d entries of clients", len(page.Items))
	}
	if page := answer[console.AuditPage](t, r, "GET", "/api/v1/audit?q=SIEM.example", ""); len(page.Items) != 1 || page.Items[0].Action != "sink.set" {
		t.Errorf("what has siem.example in it: %+v", page.Items)
	}
	result := answer[audit.Result](t, r, "GET", "/api/v1/audit/verify", "")
	if !result.OK || result.Entries != 9 {
		t.Errorf("got %+v", result)
	}
	if bad := answer[audit.Result](t, r, "GET", "/api/v1/audit/verify?head=abc", ""); bad.OK {
		t.Error("a head that is not in the chain is taken")
	}
}

// TestALongAuditLogIsSearchedInParts checks that a search for old entries is told where
// to continue, and that no question reads more than its part.
func TestALongAuditLogIsSearchedInParts(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	note := func(action string, n int) {
		for range n {
			if _, err := r.store.Audit.Append(t.Context(), audit.Change{Actor: audit.Actor{Kind: audit.KindAdminToken}, Action: action}); err != nil {
				t.Fatal(err)
			}
		}
	}
	note("client.add", 1)
	note("login", 3100)
	page := answer[console.AuditPage](t, r, "GET", "/api/v1/audit?q=client.add", "")
	if len(page.Items) != 0 || page.Next == 0 {
		t.Fatalf("got %d entries, and %d for what is next, want none yet", len(page.Items), page.Next)
	}
	page = answer[console.AuditPage](t, r, "GET", fmt.Sprintf("/api/v1/audit?q=client.add&before=%d", page.Next), "")
	if len(page.Items) != 1 || page.Next != 0 {
		t.Errorf("got %d entries, and %d for what is next, want the one and the end", len(page.Items), page.Next)
	}
}

func TestSinksGetEvents(t *testing.T) {
	type delivery struct {
		signature, body string
	}
	got := make(chan delivery, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- delivery{r.Header.Get("Adit-Signature"), string(text)}
	}))
	defer hook.Close()
	cfg := testConfig(t.TempDir())
	cfg.Sinks.AllowPrivate = true
	r := startRelay(t, cfg)
	document := fmt.Sprintf(`{"type":"webhook","url":%q,"secret":"s3cret","events":["access","audit"]}`, hook.URL)
	s := answer[console.Sink](t, r, "PUT", "/api/v1/sinks/siem", document)
	if text, _ := json.Marshal(s); strings.Contains(string(text), "s3cret") || !s.HasSecret || !s.Enabled {
		t.Errorf("got %s", text)
	}
	if test := answer[console.SinkTest](t, r, "POST", "/api/v1/sinks/siem/test", ""); !test.OK {
		t.Errorf("test: %+v", test)
	}
	var d delivery
	for limit := time.After(patience); !strings.Contains(d.body, `"TEST"`); { // it may have begun with lines of the audit log
		select {
		case d = <-got:
		case <-limit:
			t.Fatal("the test did not come")
		}
	}
	stamp, _, _ := strings.Cut(strings.TrimPrefix(d.signature, "t="), ",")
	var at int64
	fmt.Sscan(stamp, &at)
	if d.signature != sink.Sign([]byte("s3cret"), []byte(d.body), time.Unix(at, 0)) {
		t.Errorf("got %+v", d)
	}
	wanted := map[string]bool{`"sink.test"`: true, `"policy.set"`: true, `/visited`: true}
	eventually(t, "the sink runs", func() bool {
		_, runs := r.sinks.State("siem")
		return runs
	})
	a := connect(t, r.client(t, "shop"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	get(t, r.visitor(t), g.PublicURL+"/visited")
	answer[console.SinkTest](t, r, "POST", "/api/v1/sinks/siem/test", "")
	answer[console.Policy](t, r, "PUT", "/api/v1/policies/shop", "{}")
	deadline := time.After(patience)
	for len(wanted) > 0 {
		select {
		case d := <-got:
			for what := range wanted {
				if strings.Contains(d.body, what) {
					delete(wanted, what)
				}
			}
		case <-deadline:
			t.Fatalf("these did not come: %v", wanted)
		}
	}
	// A secret stays where it was, but goes nowhere else.
	keep := answer[console.Sink](t, r, "PUT", "/api/v1/sinks/siem", fmt.Sprintf(`{"type":"webhook","url":%q}`, hook.URL))
	other := answer[console.Sink](t, r, "PUT", "/api/v1/sinks/siem", fmt.Sprintf(`{"type":"webhook","url":%q}`, hook.URL+"/other"))
	if !keep.HasSecret || other.HasSecret {
		t.Errorf("the secret: kept %v, moved %v", keep.HasSecret, other.HasSecret)
	}
}

// TestMendedSinkIsSentWhatWaited uses a wrong URL at first, whose server answers
// accordingly.
func TestMendedSinkIsSentWhatWaited(t *testing.T) {
	asked, got := make(chan struct{}, 100), make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/right" {
			w.WriteHeader(http.StatusNotFound)
			asked <- struct{}{}
			return
		}
		text, _ := io.ReadAll(r.Body)
		got <- string(text)
	}))
	defer hook.Close()
	cfg := testConfig(t.TempDir())
	cfg.Sinks.AllowPrivate = true
	r := startRelay(t, cfg)
	set := func(path string) {
		answer[console.Sink](t, r, "PUT", "/api/v1/sinks/siem", fmt.Sprintf(`{"type":"webhook","url":%q}`, hook.URL+path))
	}
	set("/wrong")
	eventually(t, "the sink runs", func() bool {
		_, runs := r.sinks.State("siem")
		return runs
	})
	r.sinks.Access(wire.Access{Path: "/waited"})
	<-asked
	set("/right")
	for limit := time.After(patience); ; {
		select {
		case text := <-got:
			if strings.Contains(text, "/waited") {
				return
			}
		case <-limit:
			t.Fatal("what waited was not sent to the mended URL")
		}
	}
}

func TestSinksAreNotSentToPrivateAddresses(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	header := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	for _, where := range []string{
		`{"type":"webhook","url":"http://127.0.0.1:1/"}`, `{"type":"webhook","url":"http://[::1]/"}`, `{"type":"webhook","url":"http://169.254.169.254/"}`,
		`{"type":"webhook","url":"http://[::ffff:10.0.0.1]/"}`, `{"type":"syslog","address":"udp://192.168.1.1:514"}`, `{"type":"webhook","url":"http://localhost/"}`,
	} {
		if status, body, _ := r.ask(t, "PUT", "/api/v1/sinks/siem", where, header); status != 400 || !strings.Contains(body, "allow_private") {
			t.Errorf("%s: status %d, %s", where, status, body)
		}
	}
}
