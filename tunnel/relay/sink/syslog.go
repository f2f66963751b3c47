package sink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	defaultFacility = 16 // local0
	severityInfo    = 6
	severityNotice  = 5
	severityWarning = 4
	// dataID identifies our structured data; 32473 is the number that RFC 5612 reserves
	// for those without one.
	dataID    = "adit@32473"
	maxPacket = 2048 // what every receiver accepts over UDP (RFC 5426, section 3.2)
)

// syslog sends each event as a message in the format of RFC 5424: over UDP one per packet
// (RFC 5426), over TCP and TLS preceded by its length (RFC 6587, 5425).
type syslog struct {
	network, address string
	facility         int
	tls              *tls.Config // nil: no TLS
	dialer           *net.Dialer
	node             string

	mu   sync.Mutex
	conn net.Conn
}

func newSyslog(o Options) *syslog {
	u, err := url.Parse(o.Config.Address)
	if err != nil {
		u = &url.URL{} // Parse has ruled that out
	}
	s := &syslog{
		network: "tcp", address: u.Host, facility: defaultFacility, dialer: dialer(o.Private), node: o.Node,
	}
	if o.Config.Facility != nil {
		s.facility = *o.Config.Facility
	}
	switch u.Scheme {
	case "udp":
		s.network = "udp"
	case "tls":
		s.tls, _ = tlsConfig(u.Hostname(), o.Config.CA) // already checked
	}
	return s
}

func tlsConfig(host, ca string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if ca != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("no certificate in PEM")
		}
	}
	return c, nil
}

func (s *syslog) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

func (s *syslog) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// dial returns the connection, and makes one if there is none. If the receiver has closed
// it, that is detected before anything is written in vain. s.mu must be held.
func (s *syslog) dial(ctx context.Context) (net.Conn, error) {
	if s.conn != nil && s.network == "tcp" {
		_ = s.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := s.conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			s.drop()
		}
	}
	if s.conn != nil {
		return s.conn, nil
	}
	conn, err := s.dialer.DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, fmt.Errorf("reach syslog: %w", err)
	}
	if s.tls != nil {
		secure := tls.Client(conn, s.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("reach syslog: %w", err)
		}
		conn = secure
	}
	s.conn = conn
	return conn, nil
}

func (s *syslog) send(ctx context.Context, _ string, batch []Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetWriteDeadline(end)
	}
	var out []byte
	for _, e := range batch {
		text := s.message(e)
		if s.network == "udp" {
			if _, err := conn.Write(text[:min(len(text), maxPacket)]); err != nil {
				s.drop()
				return fmt.Errorf("send to syslog: %w", err)
			}
			continue
		}
		out = strconv.AppendInt(out, int64(len(text)), 10)
		out = append(out, ' ')
		out = append(out, text...)
	}
	if len(out) == 0 {
		return nil
	}
	if _, err := conn.Write(out); err != nil {
		s.drop()
		return fmt.Errorf("send to syslog: %w", err)
	}
	return nil
}

// message formats an event according to RFC 5424: its fields as structured data, and a
// sentence.
func (s *syslog) message(e Event) []byte {
	severity, id, at, data, text := severityInfo, e.Type, time.Now(), "-", "-"
	switch {
	case e.Access != nil:
		a := e.Access
		at = a.Time
		if a.Refused != "" {
			severity = severityWarning
		}
		data = element([][2]string{
			{"endpoint", a.Endpoint},
			{"client", a.ClientID},
			{"visitor", a.Visitor},
			{"user", a.User},
			{"country", a.Country},
			{"method", a.Method},
			{"host", a.Host},
			{"path", a.Path},
			{"status", nonZero(int64(a.Status))},
			{"refused", a.Refused},
			{"bytes_in", strconv.FormatInt(a.BytesIn, 10)},
			{"bytes_out", strconv.FormatInt(a.BytesOut, 10)},
			{"duration_ms", strconv.FormatInt(a.Duration.Milliseconds(), 10)},
		})
		text = strings.Join(strings.Fields(strings.Join([]string{a.Visitor, a.Method, plain(a.Host) + plain(a.Path), nonZero(int64(a.Status)), a.Refused}, " ")), " ")
	case e.Audit != nil:
		a := e.Audit
		at, severity = a.Time, severityNotice
		data = element([][2]string{
			{"seq", strconv.FormatUint(a.Seq, 10)},
			{"actor", a.Actor.Kind},
			{"name", a.Actor.Name},
			{"address", a.Actor.Address},
			{"action", a.Action},
			{"target", a.Target},
			{"detail", string(a.Detail)},
			{"hash", a.Hash},
		})
		text = strings.Join(strings.Fields(strings.Join([]string{a.Action, plain(a.Target), "by", a.Actor.Kind, plain(a.Actor.Name)}, " ")), " ")
	case e.Client != nil:
		c := e.Client
		at, severity = c.Time, severityWarning
		since := ""
		if c.State == Connected {
			severity = severityNotice
		}
		if c.Since != nil {
			since = c.Since.UTC().Format(time.RFC3339)
		}
		data = element([][2]string{
			{"state", c.State},
			{"client", c.ClientID},
			{"name", c.Client},
			{"since", since},
			{"public_url", c.PublicURL},
			{"message", c.Message},
		})
		text = strings.Join(strings.Fields(strings.Join([]string{plain(c.Client), c.State, c.PublicURL, plain(c.Message)}, " ")), " ")
	}
	return fmt.Appendf(nil, "<%d>1 %s %s adit - %s %s %s", s.facility*8+severity, at.UTC().Format("2006-01-02T15:04:05.000000Z"),
		header(s.node, 255), header(id, 32), data, text)
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// header formats a field of the header: printable US-ASCII without spaces.
func header(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "-"
	}
	return text[:min(len(text), limit)]
}

// plain returns what a visitor wrote as text on one line.
func plain(text string) string {
	quoted, err := json.Marshal(oneLine(text))
	if err != nil || len(quoted) < 2 {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// oneLine replaces characters that end a line, including Unicode's, or that control a
// terminal, with spaces.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`)

// element returns the structured data. Values are UTF-8 with three characters escaped
// (RFC 5424, section 6.3.3), and without line breaks here.
func element(params [][2]string) string {
	var b strings.Builder
	b.WriteString("[" + dataID)
	for _, p := range params {
		if p[1] == "" {
			continue
		}
		fmt.Fprintf(&b, ` %s="%s"`, p[0], escape.Replace(oneLine(strings.ToValidUTF8(p[1], "?"))))
	}
	b.WriteString("]")
	return b.String()
}
