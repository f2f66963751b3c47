package link

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link/mux"
)

// stalled gives the client's end of TLS to a peer that reads nothing once the
// handshake is done.
func stalled(t *testing.T, protocol string) *batchConn {
	t.Helper()
	return stalledBehind(t, protocol, func(near, far net.Conn) (net.Conn, net.Conn) { return near, far })
}

// stalledProxy is stalled through a proxy that is spoken to by TLS.
func stalledProxy(t *testing.T, protocol string) *batchConn {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue("localhost")
	if err != nil {
		t.Fatal(err)
	}
	return stalledBehind(t, protocol, func(near, far net.Conn) (net.Conn, net.Conn) {
		return newSecuredProxy(near, &tls.Config{InsecureSkipVerify: true}), tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
	})
}

func stalledBehind(t *testing.T, protocol string, between func(near, far net.Conn) (net.Conn, net.Conn)) *batchConn {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue("localhost")
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	near, behind := between(near, far)
	config := tlsServerConfig(func() (*tls.Certificate, error) { return &cert, nil }, nil)
	shaken := make(chan error, 1)
	go func() { shaken <- tls.Server(behind, config).Handshake() }()
	conn, err := tlsClient(t.Context(), near, &DialConfig{Relay: "relay:1", Fingerprint: authority.Fingerprint()}, protocol)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestClosingDoesNotWaitForAPeerThatReadsNothing: neither a session over TLS that
// is closed or has ended, nor a detour.
func TestClosingDoesNotWaitForAPeerThatReadsNothing(t *testing.T) {
	const most = 1500 * time.Millisecond
	for name, closing := range map[string]func(t *testing.T){
		"session": func(t *testing.T) {
			s := mux.New(stalled(t, alpn), muxConfig(true, 0, 0))
			time.Sleep(time.Second) // the first ping is being written
			began := time.Now()
			s.Close("enough")
			if took := time.Since(began); took > most {
				t.Errorf("Close took %v", took)
			}
		},
		"session that was given up": func(t *testing.T) {
			s := mux.New(stalled(t, alpn), muxConfig(true, 0, 0))
			<-s.Done()
			began := time.Now()
			s.Close("it is over")
			if took := time.Since(began); took > most {
				t.Errorf("Close took %v", took)
			}
		},
		"session through a proxy by TLS": func(t *testing.T) {
			s := mux.New(stalledProxy(t, alpn), muxConfig(true, 0, 0))
			time.Sleep(time.Second)
			began := time.Now()
			s.Close("enough")
			if took := time.Since(began); took > most {
				t.Errorf("Close took %v", took)
			}
		},
		"detour through a proxy by TLS": func(t *testing.T) {
			f := newFramedConn(stalledProxy(t, alpnDetour))
			ended := make(chan struct{})
			go func() { defer close(ended); f.run() }()
			f.WriteTo(make([]byte, 100), nil)
			time.Sleep(time.Second)
			began := time.Now()
			f.Close()
			<-ended
			if took := time.Since(began); took > most {
				t.Errorf("Close took %v", took)
			}
		},
		"detour": func(t *testing.T) {
			f := newFramedConn(stalled(t, alpnDetour))
			ended := make(chan struct{})
			go func() { defer close(ended); f.run() }()
			f.WriteTo(make([]byte, 100), nil)
			time.Sleep(time.Second)
			began := time.Now()
			f.Close()
			<-ended
			if took := time.Since(began); took > most {
				t.Errorf("Close took %v", took)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, closing) })
	}
}
