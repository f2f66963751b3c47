package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"adit/internal/require"
)

// capture is a pcap file in the making (libpcap's format, LINKTYPE_RAW).
type capture struct {
	mu sync.Mutex
	b  bytes.Buffer
	n  uint32
}

func newCapture() *capture {
	c := new(capture)
	for _, v := range []any{uint32(0xa1b2c3d4), uint16(2), uint16(4), int32(0), uint32(0), uint32(65535), uint32(101)} {
		_ = binary.Write(&c.b, binary.LittleEndian, v)
	}
	return c
}

func (c *capture) add(p []byte, from, to *net.UDPAddr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := uint32(28 + len(p))
	c.n++
	_ = binary.Write(&c.b, binary.LittleEndian, []uint32{c.n / 1000, c.n % 1000 * 1000, size, size})
	ip := []byte{0x45, 0, byte(size >> 8), byte(size), 0, 0, 0, 0, 64, 17, 0, 0}
	ip = append(append(ip, from.IP.To4()...), to.IP.To4()...)
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	c.b.Write(ip)
	for _, v := range []int{from.Port, to.Port, 8 + len(p), 0} {
		c.b.Write(binary.BigEndian.AppendUint16(nil, uint16(v)))
	}
	c.b.Write(p)
}

// recorded is a socket whose outgoing datagrams are captured.
type recorded struct {
	net.PacketConn
	c *capture
}

func (r recorded) WriteTo(p []byte, to net.Addr) (int, error) {
	r.c.add(p, r.LocalAddr().(*net.UDPAddr), to.(*net.UDPAddr))
	return r.PacketConn.WriteTo(p, to)
}

func TestTsharkReadsTheSessionWithTheKeyLog(t *testing.T) {
	tshark := require.Tool(t, "tshark")
	// tshark 4.0 opens no ChaCha20 record of DTLS 1.2, not even pion's Finished;
	// that suite is tried against OpenSSL.
	for _, suite := range []Suite{AES128GCM, AES256GCM} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, plain %v", suite, plain), func(t *testing.T) {
				dir := t.TempDir()
				var keys bytes.Buffer
				traffic := newCapture()
				ccfg := clientConfig()
				ccfg.Suites, ccfg.NoConnectionID, ccfg.KeyLog = []Suite{suite}, plain, &keys
				c, s := pair(t, recorded{udpSocket(t), traffic}, recorded{udpSocket(t), traffic}, ccfg, serverConfig())
				atC, atS := receiveAll(c), receiveAll(s)
				send(t, c, "what the client said")
				atS.wait(t, 1)
				send(t, s, "what the server said")
				atC.wait(t, 1)
				port := s.listener.Addr().(*net.UDPAddr).Port
				c.Close()
				atS.end(t)
				pcap, log := filepath.Join(dir, "session.pcap"), filepath.Join(dir, "keys.log")
				traffic.mu.Lock()
				defer traffic.mu.Unlock()
				if err := os.WriteFile(pcap, traffic.b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(log, keys.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(tshark, "-r", pcap, "-o", "tls.keylog_file:"+log, "-d", fmt.Sprintf("udp.port==%d,dtls", port), "-x", "-V")
				cmd.Env = append(os.Environ(), "HOME="+dir)
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("tshark: %v", err)
				}
				for _, want := range []string{"what the client said", "what the server said"} {
					// The bytes as hex, as tshark's dump of decrypted data has them.
					if !strings.Contains(hexOf(out), hex.EncodeToString([]byte(want))) {
						t.Errorf("tshark did not find %q in\n%s", want, out)
					}
				}
				if !strings.Contains(string(out), "Close Notify") {
					t.Errorf("tshark did not find the close_notify")
				}
			})
		}
	}
}

// hexOf joins the hex columns of tshark's dumps.
func hexOf(out []byte) string {
	var b strings.Builder
	for line := range strings.SplitSeq(string(out), "\n") {
		if len(line) > 53 && line[4:6] == "  " {
			b.WriteString(strings.ReplaceAll(line[6:53], " ", ""))
		}
	}
	return b.String()
}
