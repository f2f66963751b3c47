package sink

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestFaultsDoNotTellTheURL checks that a receiver's key in the path or the query reaches
// neither the log nor those who may only read sinks.
func TestFaultsDoNotTellTheURL(t *testing.T) {
	hook := httptest.NewServer(http.NotFoundHandler())
	url := hook.URL + "/services/p4thkey?token=qu3rykey"
	hook.Close()
	var text bytes.Buffer
	s := New(Options{Name: "siem", Config: Config{Type: Webhook, URL: url, Events: []string{Access}}, Private: true, Log: slog.New(slog.NewTextHandler(&text, nil))})
	s.pause = time.Microsecond
	defer s.Close()
	err := s.Test(t.Context(), access("/"))
	if err == nil {
		t.Fatal("nobody is there, and it was sent")
	}
	if s.deliver(t.Context(), s.now(), "id", []Event{access("/")}); !strings.Contains(text.String(), "they are dropped") {
		t.Fatalf("after the last try the log says %q", text.String())
	}
	for what, said := range map[string]string{"the answer to a test": err.Error(), "the state": s.State().LastError, "the log": text.String()} {
		if strings.Contains(said, "p4thkey") || strings.Contains(said, "qu3rykey") {
			t.Errorf("%s says %s", what, said)
		}
	}
}
