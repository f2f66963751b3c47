package signin

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/tunnel/relay/policy"
)

// TestStrangersDoNotFillTheLog checks that what anybody can cause as often as they like
// is not logged each time.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	f := newFakeProvider(t)
	f.down = true
	v, s := f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true})
	var said bytes.Buffer
	p := v.providers["company"]
	p.log = slog.New(slog.NewTextHandler(&said, nil))
	visit := func() {
		v.Begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "https://shop.relay.test/", nil), s, "/", refuse)
	}
	for range 20 {
		visit()
	}
	if n := strings.Count(said.String(), "cannot be asked"); n != 1 {
		t.Errorf("a provider that was asked once and is away is said %d times", n)
	}
	age(p.source.(*openID), failedFor)
	if visit(); strings.Count(said.String(), "cannot be asked") != 2 {
		t.Errorf("asked again in vain: the log has %s", said.String())
	}
	f.down = false
	age(p.source.(*openID), failedFor)
	tries := 10
	s.Try = func() (func(), bool) {
		tries--
		return func() { tries++ }, tries >= 0
	}
	for i := range 20 {
		answer, _ := f.signInWith(t, v, s, "&iss=https://evil.example")
		if want := map[bool]int{true: http.StatusBadRequest, false: http.StatusTooManyRequests}[i < 10]; answer.Code != want {
			t.Errorf("answer %d of another provider: status %d, want %d", i, answer.Code, want)
		}
	}
	if n := strings.Count(said.String(), "another provider"); n != 10 {
		t.Errorf("answers of another provider are said %d times, want 10", n)
	}
}
