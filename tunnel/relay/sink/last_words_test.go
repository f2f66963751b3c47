package sink

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDeliveryKeepsItsIDAtTheEnd stops a sink while a receiver has a delivery and has not
// answered. The last attempt is the same delivery, so that the receiver can recognise it.
func TestDeliveryKeepsItsIDAtTheEnd(t *testing.T) {
	type delivery struct{ id, body string }
	got := make(chan delivery, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		first := len(got) == 0
		got <- delivery{r.Header.Get("Adit-Delivery"), body.String()}
		if first {
			<-r.Context().Done() // the answer is never sent
		}
	}))
	defer hook.Close()
	s := New(Options{Name: "siem", Config: Config{Type: Webhook, URL: hook.URL, Events: []string{Access}}, Private: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.Add(access("/first"))
	eventually(t, "the receiver has it", func() bool { return len(got) == 1 })
	s.Add(access("/second"))
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	close(got)
	var list []delivery
	for d := range got {
		list = append(list, d)
	}
	if len(list) != 3 || list[0] != list[1] || list[2].id == list[0].id || !strings.Contains(list[2].body, "/second") || strings.Contains(list[2].body, "/first") {
		t.Errorf("got %q", list)
	}
	if st := s.State(); st.Sent != 2 || st.Dropped != 0 || st.Queued != 0 {
		t.Errorf("it says of itself %+v", st)
	}
}

// TestWhatWaitsIsCountedAndWhatIsLostIsSaid stops a sink whose receiver accepts nothing.
func TestWhatWaitsIsCountedAndWhatIsLostIsSaid(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer hook.Close()
	var log bytes.Buffer
	s := New(Options{
		Name: "siem", Config: Config{Type: Webhook, URL: hook.URL, Events: []string{Access}}, Private: true,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.Add(access("/first"))
	eventually(t, "it is tried", func() bool { return s.State().Failed > 0 })
	if st := s.State(); st.Queued != 1 {
		t.Errorf("%d wait while one is tried again", st.Queued)
	}
	s.Add(access("/second"))
	if st := s.State(); st.Queued != 2 {
		t.Errorf("%d wait behind one that is tried again", st.Queued)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Queued != 0 || st.Dropped != 2 {
		t.Errorf("it says of itself %+v", st)
	}
	if text := log.String(); !strings.Contains(text, "dropped") || !strings.Contains(text, "sink=siem count=2") {
		t.Errorf("the log says %q", text)
	}
}
