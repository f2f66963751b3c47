package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	pathTable  = "/v1/table"
	pathAccess = "/v1/access"
	headerNode = "Adit-Node"
	headTime   = 10 * time.Second
	maxAccess  = 4 << 20
)

// serve handles the requests of another node on a session that the node has dialled.
func (m *Mesh) serve(ctx context.Context, s link.Session) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	control := &streamQueue{ctx: ctx, session: s, streams: make(chan net.Conn)}
	server := &http.Server{
		Handler: m.routes(), ReadHeaderTimeout: headTime, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(control) }) // ends with ctx
	wg.Go(func() { m.serveFlows(ctx, s) })
	for {
		st, err := s.AcceptStream(ctx)
		if err != nil {
			break
		}
		wg.Go(func() { m.serveStream(ctx, st, control) })
	}
	s.Close("the node ends")
	cancel()
	server.Close()
	wg.Wait()
}

// serveStream serves one stream that another node has opened.
func (m *Mesh) serveStream(ctx context.Context, st link.Stream, control *streamQueue) {
	st.SetReadDeadline(time.Now().Add(headTime))
	var kind [1]byte
	if _, err := io.ReadFull(st, kind[:]); err != nil {
		st.Reset()
		return
	}
	switch kind[0] {
	case streamVisitor:
		m.serveVisitor(ctx, st)
	case streamControl:
		st.SetReadDeadline(time.Time{})
		select {
		case control.streams <- st:
		case <-ctx.Done():
			st.Reset()
		}
	default:
		m.log.Debug("a stream of an unknown kind between nodes", "kind", kind[0])
		st.Reset()
	}
}

// serveVisitor passes a visitor of another node on to an agent here.
func (m *Mesh) serveVisitor(ctx context.Context, st link.Stream) {
	id, err := readSession(st)
	if err != nil {
		m.log.Debug("visitor of another node", "error", err)
		st.Reset()
		return
	}
	st.SetReadDeadline(time.Time{})
	m.relayed.n.Add(1)
	defer m.relayed.n.Add(-1)
	open, cancel := context.WithTimeout(ctx, openTime)
	to, err := m.cfg.Local.OpenStream(open, id)
	cancel()
	if err != nil {
		st.SetWriteDeadline(time.Now().Add(headTime))
		_, _ = st.Write([]byte{notHere}) // the stream ends either way
		_ = st.CloseWrite()
		// What the visitor has sent is left unread, since nobody is there for it.
		st.Close()
		return
	}
	pipe(ctx, st, to)
}

func (m *Mesh) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathTable, m.serveTable)
	mux.HandleFunc("POST "+pathAccess, m.serveAccess)
	return mux
}

// serveTable sends everything that this node has, and then the changes, until the session
// ends.
func (m *Mesh) serveTable(w http.ResponseWriter, r *http.Request) {
	follow := m.table.follow()
	defer m.table.unfollow(follow)
	w.Header().Set(headerNode, m.cfg.ID)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := bufio.NewWriterSize(w, 32<<10)
	enc, flush := newLines(out), http.NewResponseController(w).Flush
	for {
		select {
		case <-follow.more:
		case <-r.Context().Done():
			return
		}
		lines, ok := follow.take()
		if !ok {
			return // the other node starts again
		}
		for i := range lines {
			if enc.Encode(&lines[i]) != nil {
				return
			}
		}
		if out.Flush() != nil || flush() != nil {
			return
		}
	}
}

// accessLine is a visit to an agent, recorded by another node.
type accessLine struct {
	Session string      `json:"session"`
	Access  wire.Access `json:"access"`
}

func (m *Mesh) serveAccess(w http.ResponseWriter, r *http.Request) {
	var list []accessLine
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAccess)).Decode(&list); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	bySession := map[string][]wire.Access{}
	for _, l := range list {
		bySession[l.Session] = append(bySession[l.Session], l.Access)
	}
	var answer accessAnswer
	for id, events := range bySession {
		if !m.cfg.Local.Access(id, events) {
			answer.Unwanted = append(answer.Unwanted, id)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer)
}

// accessAnswer lists the sessions that want no more events.
type accessAnswer struct {
	Unwanted []string `json:"unwanted,omitempty"`
}

// streamQueue passes the control streams of a session to an http.Server.
type streamQueue struct {
	ctx     context.Context
	session link.Session
	streams chan net.Conn
}

func (q *streamQueue) Accept() (net.Conn, error) {
	select {
	case st := <-q.streams:
		return st, nil
	case <-q.ctx.Done():
		return nil, net.ErrClosed
	case <-q.session.Done():
		return nil, net.ErrClosed
	}
}

func (q *streamQueue) Close() error   { return nil }
func (q *streamQueue) Addr() net.Addr { return q.session.LocalAddr() }
