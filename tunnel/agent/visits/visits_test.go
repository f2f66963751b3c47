package visits

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/link"
)

// closed returns Visits that run until the test ends, to tunnels that let nobody in.
func closed(t *testing.T) *Visits {
	t.Helper()
	vs := New(slog.New(slog.DiscardHandler), nobody{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { vs.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return vs
}

// nobody is a Dialer that lets nobody in.
type nobody struct{}

func (nobody) DialPrivate(context.Context, string) (link.Stream, error) {
	return nil, errors.New("nobody is let in")
}

func (nobody) DialPrivateUDP(context.Context, string, func([][]byte)) (*Flow, error) {
	return nil, errors.New("nobody is let in")
}

// visitIs waits until the only visit is as ok says.
func visitIs(t *testing.T, vs *Visits, ok func(Visit) bool) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		list := vs.List()
		if len(list) == 1 && ok(list[0]) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the visits are %+v", list)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestAPortThatIsTakenIsTriedAgain(t *testing.T) {
	vs := closed(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := vs.Declare([]definition.Visit{{Tunnel: "nas/ssh", Listen: other.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	visitIs(t, vs, func(v Visit) bool { return v.State == StateFailed && strings.Contains(v.Error, "in use") })
	other.Close()
	visitIs(t, vs, func(v Visit) bool { return v.State == StateListening })
}

// A mistake in one of the visits changes nothing.
func TestVisitsStayAsTheyWereAfterAMistake(t *testing.T) {
	vs := closed(t)
	if err := vs.Declare([]definition.Visit{{Tunnel: "nas/ssh", Listen: "0.0.0.0:2222"}}); err == nil || len(vs.List()) != 0 {
		t.Errorf("got %v, and the visits %+v, want none", err, vs.List())
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	right := definition.Visit{Tunnel: "nas/ssh", Listen: other.Addr().String()}
	other.Close()
	if err := vs.Declare([]definition.Visit{right}); err != nil {
		t.Fatal(err)
	}
	var wrong *definition.DeclareError
	if err := vs.Declare([]definition.Visit{right, {Tunnel: "nas", Listen: "2223"}}); !errors.As(err, &wrong) || wrong.Index != 1 {
		t.Errorf("got %v, want a mistake in the second", err)
	}
	visitIs(t, vs, func(v Visit) bool { return v.Listen == right.Listen && v.State == StateListening })
	if conn, err := net.Dial("tcp", right.Listen); err == nil { // it may be reset before the dialler has it
		defer conn.Close()
	}
	visitIs(t, vs, func(v Visit) bool { return v.Error == "nobody is let in" && v.Connections.Total == 1 })
}
