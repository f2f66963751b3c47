package agent

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

func TestNothingIsLeftAfterRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r := newFakeRelay(t)
	a, stop := configured(t, r, Config{})
	tcp := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	udp := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: 9})
	s := r.mustVisit(tcp.ID, wire.StreamRaw)
	s.Write([]byte("x"))
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	number := r.numbers[udp.ID]
	r.mu.Unlock()
	d := wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWhole, Endpoint: number, Number: 1, Payload: []byte("x")})
	if err := r.session().SendDatagram(d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "flow is open", func() bool {
		for _, e := range a.Endpoints() {
			if e.TunnelID == udp.ID && e.Connections.Total == 1 {
				return true
			}
		}
		return false
	})
	if _, err := a.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	r.kill()
	http.DefaultClient.CloseIdleConnections()
	// The origin of this test ends with the test's cleanups.
	s.Reset()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err = goleak.Find(before, goleak.IgnoreAnyFunction("adit/tunnel/agent.service.func2")); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(errors.Join(errors.New("goroutines are left"), err))
}
