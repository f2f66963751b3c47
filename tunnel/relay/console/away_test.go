package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/tunnel/relay/store/bucket"
)

func TestChangesAreRefusedWhileTooManyWaitForTheAuditLog(t *testing.T) {
	r := serve(t)
	r.relay.away = &Error{http.StatusServiceUnavailable, "unavailable", "nothing was changed", ""}
	for _, q := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/api/v1/clients", `{"name":"a"}`, 503},
		{"DELETE", "/api/v1/clients/shop", "", 503},
		{"PUT", "/api/v1/policies/shop.relay.test", `{}`, 503},
		{"POST", "/api/v1/accounts", `{"name":"ann","role":"viewer","password":"` + testPass + `"}`, 503},
		{"POST", "/api/v1/setup", `{"code":"` + testCode + `","name":"ann","password":"` + testPass + `"}`, 503},
		{"POST", "/api/v1/setup", `{"code":"wrong","name":"ann","password":"` + testPass + `"}`, 401},
		{"GET", "/api/v1/clients", "", 200},
		{"POST", "/api/v1/policies/shop.relay.test/explain", `{"address":"192.0.2.1"}`, 200},
	} {
		(&browser{r: r, token: testToken}).want(q.want, q.method, q.path, q.body)
	}
	if list := r.Console.accounts(); len(list) != 0 {
		t.Errorf("an account was made: %+v", list)
	}
}

// TestFullDiskIsToldOf covers a full disk, when the server in this process does not
// answer.
func TestFullDiskIsToldOf(t *testing.T) {
	r := serve(t)
	r.relay.condition = "full"
	w := httptest.NewRecorder()
	r.Console.refuse(w, httptest.NewRequest("DELETE", "/", nil), fmt.Errorf("store: %w", context.DeadlineExceeded))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "is full; free some space") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestFaultsOfTheStoreAreToldApart(t *testing.T) {
	r := serve(t)
	for _, test := range []struct {
		fault  error
		method string
		want   int
		says   string
	}{
		{fmt.Errorf("store: %w", bucket.ErrConflict), "DELETE", 409, "conflict"},
		{fmt.Errorf("store: %w", context.DeadlineExceeded), "DELETE", 503, "not known whether"},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), "GET", 503, "try again in a moment"},
		{fmt.Errorf("another"), "GET", 500, "internal"},
	} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(test.method, "/api/v1/clients/x", nil)
		r.Console.refuse(w, req, test.fault)
		if w.Code != test.want || !strings.Contains(w.Body.String(), test.says) || (test.want == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%v: got %d %s", test.fault, w.Code, w.Body)
		}
	}
}
