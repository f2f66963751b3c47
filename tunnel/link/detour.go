package link

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
)

// dialDetour opens the detour for the records of a session with the relay at addr: a TLS connection
// to the same port, through the proxy if there is one.
func dialDetour(ctx context.Context, addr netip.AddrPort, cfg *DialConfig) (*framedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	via, err := cfg.Proxy(cfg.Relay)
	if err != nil {
		return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
	}
	dial := cfg.DialContext
	if via != nil {
		conn, err := proxyDial(ctx, dial, via, cfg.Relay)
		if err != nil {
			return nil, fmt.Errorf("dial relay %s: %w", cfg.Relay, err)
		}
		return frame(tlsClient(ctx, conn, cfg, alpnDetour))
	}
	conn, err := dial(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("dial relay %s over TLS: %w", cfg.Relay, err)
	}
	return frame(tlsClient(ctx, conn, cfg, alpnDetour))
}

func frame(conn *batchConn, err error) (*framedConn, error) {
	if err != nil {
		return nil, err
	}
	return newFramedConn(conn), nil
}

// carryDetour takes in the records that arrive over conn until conn ends. It calls leave once one
// of them is proven to belong to a session.
func (l *Listener) carryDetour(conn *batchConn, leave func()) {
	if l.dtls == nil {
		l.failed.Add(1)
		conn.Close()
		return
	}
	framed := newFramedConn(conn)
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(framed.run)
	err := l.dtls.Carry(framed, leave)
	l.log.Debug("detour ended", "remote", conn.RemoteAddr(), "error", err)
}
