package forward

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// visiting is a stream of a visitor who has sent a preface and nothing more.
type visiting struct {
	link.Stream
	preface io.Reader
	left    atomic.Bool
	told    bytes.Buffer
}

func (v *visiting) Read(b []byte) (int, error) {
	switch {
	case v.left.Load():
		return 0, link.ErrReset
	case len(b) == 0:
		return 0, nil
	}
	return v.preface.Read(b)
}

func (v *visiting) Write(b []byte) (int, error)      { return v.told.Write(b) }
func (v *visiting) Close() error                     { return nil }
func (v *visiting) Reset()                           {}
func (v *visiting) SetReadDeadline(time.Time) error  { return nil }
func (v *visiting) SetWriteDeadline(time.Time) error { return nil }
func (v *visiting) LocalAddr() net.Addr              { return nil }

// TestVisitorsWhoHaveLeftAreNotConnected: a service that hangs takes seconds to be given up,
// and visitors may come and go much faster.
func TestVisitorsWhoHaveLeftAreNotConnected(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const patience = time.Minute
			by := quiet(&origin.Dialer{Timeout: patience, Lookup: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			troubles := 0
			by.complain = func(string, string, string) { troubles++ }
			s := by.Session(nil, nil)
			s.tunnels[3] = NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeTCP, LocalIP: "nas.test", LocalPort: 80})
			preface, err := wire.AppendPreface(nil, wire.Preface{
				Visitor: netip.MustParseAddrPort("192.0.2.1:1"), Edge: netip.MustParseAddrPort("192.0.2.2:2"), Endpoint: 3, Kind: wire.StreamRaw,
			})
			if err != nil {
				t.Fatal(err)
			}
			v := &visiting{preface: bytes.NewReader(preface)}
			if leaves {
				time.AfterFunc(time.Second, func() { v.left.Store(true) })
			}
			begin := time.Now()
			s.visit(t.Context(), v)
			if took := time.Since(begin); leaves && took > 2*time.Second || !leaves && took != patience {
				t.Errorf("leaves %t: the service was waited for for %v", leaves, took)
			}
			if troubles != 1 {
				t.Errorf("leaves %t: the owner was told of %d troubles, want 1", leaves, troubles)
			}
			synctest.Wait()
		})
	}
}
