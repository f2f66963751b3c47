package localapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestWhatAPolicyReplacesIsTheRelaysToJudge holds that the tag of a policy, and
// what a change of it expects, go between caller and relay as they are.
func TestWhatAPolicyReplacesIsTheRelaysToJudge(t *testing.T) {
	f := newFakeAgent()
	s, err := New(Config{Agent: f, Events: newFakeFeed().begin})
	if err != nil {
		t.Fatal(err)
	}
	handler := s.guarded(netip.MustParseAddrPort("127.0.0.1:37271"))
	ask := func(method string, header http.Header) http.Header {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:37271/api/v1/tunnels/t_1/policy", strings.NewReader(`{"rate":5}`))
		r.RemoteAddr = "127.0.0.1:50000"
		r.Header = header
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: got status %d: %s", method, w.Code, w.Body)
		}
		return w.Header()
	}
	if got := ask(http.MethodGet, http.Header{}).Get("ETag"); got != `"none"` {
		t.Errorf("read: got ETag %s", got)
	}
	if got := ask(http.MethodPut, http.Header{"If-Match": {`"a"`, `W/"b"`}}).Get("ETag"); got != `"1"` {
		t.Errorf("changed: got ETag %s", got)
	}
	if got := f.expected; len(got) != 1 || strings.Join(got["If-Match"], " ") != `"a" W/"b"` {
		t.Errorf("the relay is asked for %v", got)
	}
	ask(http.MethodPut, http.Header{})
	if len(f.expected) != 0 {
		t.Errorf("who expects nothing has the relay asked for %v", f.expected)
	}
}

// TestPolicyWithAFieldTwiceIsRefused holds that no half of what a policy says is
// dropped unsaid.
func TestPolicyWithAFieldTwiceIsRefused(t *testing.T) {
	for document, field := range map[string]string{
		`{}`: "",
		`{"deny":["a","a"],"allow":["deny"],"hours":{"zone":"deny"},"basic_auth":[{"name":"a"},{"name":"b"}]}`: "",
		`{"deny":["a"],"rate":5,"Deny":["b"]}`:                        "Deny",
		`{"basic_auth":[{"name":"a","password":"x","password":"y"}]}`: "password",
	} {
		err := checkOnce([]byte(document))
		var p *problem
		if errors.As(err, &p) != (field != "") || p != nil && p.field != field {
			t.Errorf("%s: got %v, want the field %q at fault", document, err, field)
		}
	}
}
