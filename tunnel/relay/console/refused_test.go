package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// detailed keeps the details of what is recorded.
type detailed struct {
	fakeRelay
	details []string
}

func (d *detailed) Record(_ context.Context, action, _ string, detail any) {
	d.details = append(d.details, fmt.Sprint(action, " ", detail))
}

// TestStrangersDoNotFillTheAuditLog signs in wrongly from many addresses.
func TestStrangersDoNotFillTheAuditLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := &detailed{}
		c, err := New(Config{Relay: relay, Keeper: newMemory(), AdminToken: testToken})
		if err != nil {
			t.Fatal(err)
		}
		tries := 0
		refuse := func() {
			tries++
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/v1/session", strings.NewReader(`{"token":"wrong"}`))
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", tries/256, tries%256)
			w := httptest.NewRecorder()
			if c.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
				t.Fatalf("got status %d: %s, want 401", w.Code, w.Body)
			}
		}
		for range refusedAtOnce + 50 {
			refuse()
		}
		if len(relay.details) != refusedAtOnce {
			t.Errorf("got %d entries of %d refused logins, want %d", len(relay.details), tries, refusedAtOnce)
		}
		time.Sleep(refusedAgain)
		refuse()
		refuse()
		if got, want := relay.details[len(relay.details)-1], "login.refused map[omitted:50]"; got != want || len(relay.details) != refusedAtOnce+1 {
			t.Errorf("got %d entries, the last %q, want %d and %q", len(relay.details), got, refusedAtOnce+1, want)
		}
	})
}
