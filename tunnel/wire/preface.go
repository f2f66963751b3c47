package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"unicode/utf8"

	proxyproto "github.com/pires/go-proxyproto"
)

// StreamKind says what a stream opened by the relay carries.
type StreamKind byte

// The kinds of stream.
const (
	// StreamRaw is one visitor's connection, byte for byte (tcp, tls).
	StreamRaw StreamKind = 1
	// StreamHTTP carries HTTP/1.1 requests one after another, which may be of different
	// visitors (http, https). Each request names its visitor in X-Forwarded-For.
	StreamHTTP StreamKind = 2
)

// Types of the preface's own TLVs, from the range that the PROXY protocol reserves for
// applications.
const (
	tlvEndpoint  = proxyproto.PP2Type(0xE0) // uint32, the Grant's Number
	tlvKind      = proxyproto.PP2Type(0xE1) // one byte, StreamKind
	tlvPath      = proxyproto.PP2Type(0xE2) // the ClaimPath.Path that the stream is for
	tlvClient    = proxyproto.PP2Type(0xE3) // the client that is visiting a private tunnel
	tlvAuthority = proxyproto.PP2Type(0x02) // PP2_TYPE_AUTHORITY
)

const (
	prefaceFixed  = 16   // signature, version and command, family, length
	maxPreface    = 1024 // without the fixed part
	maxAuthority  = 255
	maxTLVsInside = 16
)

// Preface begins every stream that carries visitors. Its encoding is a PROXY protocol v2
// header (haproxy's proxy-protocol.txt, §2.2), with TLVs for the fields that such a header
// does not have, so that an origin's own tools can read it.
type Preface struct {
	// Visitor and Edge are the two ends of the visitor's connection. On the wire both have the
	// same address family: IPv6 if either is IPv6.
	Visitor, Edge netip.AddrPort
	Endpoint      uint32 // the Grant's Number
	Kind          StreamKind
	// Authority is the name that the visitor asked for (SNI or Host), if any.
	Authority string
	// Path is the Claim's path whose service the stream is for. If empty, the stream is for
	// the tunnel's own service.
	Path string
	// Client is the name of the client that is visiting, for a private tunnel.
	Client string
}

// ErrPreface is matched by every error about a malformed preface.
var ErrPreface = errors.New("malformed stream header")

func prefaceError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPreface, fmt.Sprintf(format, args...))
}

// AppendPreface appends p as bytes to b. An authority of more than 255 bytes is left out, and
// unset addresses are sent as 0.0.0.0:0.
func AppendPreface(b []byte, p Preface) ([]byte, error) {
	var number [4]byte
	binary.BigEndian.PutUint32(number[:], p.Endpoint)
	tlvs := []proxyproto.TLV{
		{Type: tlvEndpoint, Value: number[:]},
		{Type: tlvKind, Value: []byte{byte(p.Kind)}},
	}
	if p.Authority != "" && len(p.Authority) <= maxAuthority {
		tlvs = append(tlvs, proxyproto.TLV{Type: tlvAuthority, Value: []byte(p.Authority)})
	}
	switch {
	case len(p.Path) > MaxPath:
		return nil, fmt.Errorf("write stream header: a path of %d bytes", len(p.Path))
	case p.Path != "":
		tlvs = append(tlvs, proxyproto.TLV{Type: tlvPath, Value: []byte(p.Path)})
	}
	if p.Client != "" {
		tlvs = append(tlvs, proxyproto.TLV{Type: tlvClient, Value: []byte(p.Client)})
	}
	h := proxyproto.HeaderProxyFromAddrs(2, tcpAddr(p.Visitor), tcpAddr(p.Edge))
	if err := h.SetTLVs(tlvs); err != nil {
		return nil, fmt.Errorf("write stream header: %w", err)
	}
	out, err := h.Format()
	if err != nil {
		return nil, fmt.Errorf("write stream header: %w", err)
	}
	return append(b, out...), nil
}

func tcpAddr(a netip.AddrPort) *net.TCPAddr {
	if !a.IsValid() {
		a = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return &net.TCPAddr{IP: a.Addr().WithZone("").AsSlice(), Port: int(a.Port())}
}

// ReadPreface reads a preface from the beginning of a stream, without consuming any bytes
// beyond it.
func ReadPreface(r io.Reader) (Preface, error) {
	var fixed [prefaceFixed]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Preface{}, fmt.Errorf("read stream header: %w", err)
	}
	if !bytes.Equal(fixed[:12], proxyproto.SIGV2) {
		return Preface{}, prefaceError("the signature is missing")
	}
	rest := int(binary.BigEndian.Uint16(fixed[14:]))
	if rest > maxPreface {
		return Preface{}, prefaceError("%d bytes are more than %d", rest, maxPreface)
	}
	all := make([]byte, prefaceFixed+rest)
	copy(all, fixed[:])
	if _, err := io.ReadFull(r, all[prefaceFixed:]); err != nil {
		return Preface{}, fmt.Errorf("read stream header: %w", err)
	}
	return parsePreface(all)
}

func parsePreface(all []byte) (Preface, error) {
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(all), len(all)))
	if err != nil {
		return Preface{}, prefaceError("%v", err)
	}
	source, dest, ok := h.TCPAddrs()
	if !ok || h.Command.IsLocal() {
		return Preface{}, prefaceError("it names no TCP addresses")
	}
	p := Preface{Visitor: unmap(source.AddrPort()), Edge: unmap(dest.AddrPort())}
	tlvs, err := h.TLVs()
	if err != nil || len(tlvs) > maxTLVsInside {
		return Preface{}, prefaceError("its extensions do not parse")
	}
	seen := map[proxyproto.PP2Type]bool{}
	for _, t := range tlvs {
		if seen[t.Type] {
			return Preface{}, prefaceError("extension %#02x comes twice", byte(t.Type))
		}
		seen[t.Type] = true
		switch t.Type {
		case tlvEndpoint:
			if len(t.Value) != 4 {
				return Preface{}, prefaceError("the endpoint number has %d bytes", len(t.Value))
			}
			p.Endpoint = binary.BigEndian.Uint32(t.Value)
		case tlvKind:
			if len(t.Value) != 1 {
				return Preface{}, prefaceError("the kind has %d bytes", len(t.Value))
			}
			p.Kind = StreamKind(t.Value[0])
		case tlvAuthority:
			if len(t.Value) > maxAuthority || !utf8.Valid(t.Value) {
				return Preface{}, prefaceError("the authority is not a name")
			}
			p.Authority = string(t.Value)
		case tlvPath:
			if len(t.Value) == 0 || len(t.Value) > MaxPath || !utf8.Valid(t.Value) {
				return Preface{}, prefaceError("the path is none")
			}
			p.Path = string(t.Value)
		case tlvClient:
			if !clientName.Match(t.Value) {
				return Preface{}, prefaceError("the client has no name")
			}
			p.Client = string(t.Value)
		}
	}
	if !seen[tlvEndpoint] || !seen[tlvKind] {
		return Preface{}, prefaceError("it names no endpoint or no kind")
	}
	if p.Kind != StreamRaw && p.Kind != StreamHTTP {
		return Preface{}, prefaceError("kind %d is not known", p.Kind)
	}
	return p, nil
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
