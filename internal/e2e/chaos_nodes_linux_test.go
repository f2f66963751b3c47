package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/freeport"
)

// TestChaosOfNodes has three relays on three NATS servers, and kills, pauses and
// restarts each of the six, all of NATS, and agents, has the servers answer
// slowly, and sets the clocks of single nodes, for ADIT_CHAOS. Visitors at all
// nodes check every byte; an administrator changes clients and policies all the
// while. After each fault every tunnel answers at every node, all nodes agree on
// what is configured and it is what the administrator was told, a name that two
// clients want has one of them, and a client that is revoked gets nothing. A
// tunnel that brings a password lets no stranger in at any time, wherever it moves.
func TestChaosOfNodes(t *testing.T) {
	length, seed := chaosOf(t)
	needLoopback(t)
	c := newNodesChaos(t, prepareNATS(t, 3))
	c.run(length, seed, spare(c.faults(seed)))
}

// spare leaves out of a short run what ends most of NATS at once: after that,
// seldom, its servers find no leader of a stream for a minute and more, which
// takes longer than the run has.
func spare(faults []fault) []fault {
	if os.Getenv("ADIT_CHAOS") != "" {
		return faults
	}
	return slices.DeleteFunc(faults, func(f fault) bool {
		return slices.Contains([]string{"all of NATS killed", "two NATS servers killed", "NATS loses its last writes"}, f.name)
	})
}

// nodesChaos is a relay of several nodes with its agents, visitors and administrator.
type nodesChaos struct {
	t       *testing.T
	nats    []*natsProcess
	nodes   []*relay
	clocks  []*clock // of the nodes
	agents  []*agent
	sites   []site
	visits  [3]string // by agent: where it listens for the private tunnels, by TCP and UDP
	contest [2]int    // ports of two services that want one name
	victim  *agent
	admin   *administrator
	guarded *guarded
	visitor *http.Client
	askers  [3]asker // by node
	guests  [3]asker // by agent, of the private udp tunnel
	count   transfers
	revoked []time.Duration // until nobody served a revoked client
	end     chan struct{}
	wg      sync.WaitGroup
}

// site is a tunnel that must answer at every node; a private one, at every agent.
type site struct {
	agent int
	kind  string
	made  tunnel
}

func newNodesChaos(t *testing.T, nats []*natsProcess) *nodesChaos {
	t.Helper()
	c := &nodesChaos{t: t, nats: nats, end: make(chan struct{})}
	for _, s := range nats {
		s.start()
	}
	for _, s := range nats {
		s.awaitUp()
	}
	c.nodes = prepareNodes(t, 3, nats)
	for _, r := range c.nodes {
		clock := newClock(t)
		r.program, r.env = clock.program, []string{clock.env()}
		if len(nats) > 0 && nats[0].gid != 0 {
			r.gid = nats[0].gid + len(nats) + len(c.clocks)
		}
		c.clocks = append(c.clocks, clock)
		r.start()
	}
	c.visitor = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 16, DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
	}}
	t.Cleanup(func() {
		c.visitor.CloseIdleConnections()
		for i := range c.askers {
			c.askers[i].close()
			c.guests[i].close()
		}
	})
	c.admin = newAdministrator(t, c.nodes)
	port, echo, question := newOrigin(t), newEcho(t), serveUDP(t, same)
	for i := range 3 {
		a := newAgent(t)
		token := c.nodes[i].client(fmt.Sprintf("owner%d", i))
		await(t, "the agent's client is known", func() error { // the token leads to the first node
			if got := a.call("POST", "/api/v1/auth/configure", map[string]any{"auth_token": token}); got.Status != http.StatusOK {
				return errors.New(got.Raw)
			}
			return nil
		})
		a.awaitConnected()
		c.agents = append(c.agents, a)
		c.sites = append(c.sites, site{i, "http", a.publish("http", port, map[string]any{"domain": fmt.Sprintf("chaos%d", i)})})
	}
	c.sites = append(c.sites, site{0, "tcp", c.agents[0].publish("tcp", echo, nil)}, site{1, "udp", c.agents[1].publish("udp", question, nil)})
	c.sites = append(c.sites, c.private(echo, question)...)
	c.admin.fence(c.agents[2].publish("http", port, map[string]any{"domain": "fence"}))
	c.contest = [2]int{newNamed(t, "first"), newNamed(t, "second")}
	c.victim = newAgent(t)
	c.guard(2, port)
	c.awaitWhole()
	for i := range c.nodes {
		for k := range c.sites {
			c.wg.Go(func() { c.load(i, k) })
		}
	}
	return c
}

// private are tunnels that all owners have declared visits of.
func (c *nodesChaos) private(echo, question int) []site {
	c.t.Helper()
	visitors := []string{"owner0", "owner1"}
	stream := c.agents[2].publish("tcp", echo, map[string]any{"mode": "private", "domain": "echo", "visitors": visitors})
	packets := c.agents[2].publish("udp", question, map[string]any{"mode": "private", "domain": "question", "visitors": visitors})
	for i, a := range c.agents {
		c.visits[i] = freeport.Loopback(c.t)
		a.declare("[[visit]]\ntunnel = %q\nlisten = %q\n[[visit]]\ntunnel = %q\ntype = \"udp\"\nlisten = %[2]q\n",
			strings.TrimPrefix(stream.PublicURL, "adit://"), c.visits[i], strings.TrimPrefix(packets.PublicURL, "adit://"))
	}
	return []site{{2, "private", stream}, {2, "private udp", packets}}
}

// newNamed is a site that says its name.
func newNamed(t *testing.T, name string) (port int) {
	t.Helper()
	l := listenLoopback(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	t.Cleanup(func() { server.Close(); serving.Wait() })
	return portOf(t, l.Addr().String())
}

// load visits one site at one node until the end, as chaos.load does.
func (c *nodesChaos) load(node, site int) {
	random := rand.New(rand.NewPCG(uint64(node), uint64(site)))
	for {
		select {
		case <-c.end:
			return
		case <-time.After(20 * time.Millisecond):
		}
		var wrong wrongBytes
		switch err := c.visit(node, c.sites[site], random); {
		case err == nil:
			c.count.whole.Add(1)
		case errors.As(err, &wrong):
			c.t.Errorf("wrong bytes: %v", err)
			return
		default:
			c.count.cut.Add(1)
			select {
			case <-c.end:
			case <-time.After(100 * time.Millisecond): // a fault is on: do not spin
			}
		}
	}
}

// visit asks one site at one node once, and checks every byte of the answer.
// Of a private one node is the agent that is asked.
func (c *nodesChaos) visit(node int, s site, random *rand.Rand) error {
	switch s.kind {
	case "private":
		return c.talk(c.visits[node], random)
	case "private udp":
		return c.guests[node].question(c.visits[node])
	}
	host, _, _ := net.SplitHostPort(c.nodes[node].http)
	addr := net.JoinHostPort(host, s.made.PublicURL[strings.LastIndex(s.made.PublicURL, ":")+1:])
	switch s.kind {
	case "tcp":
		return c.talk(addr, random)
	case "udp":
		return c.askers[node].question(addr)
	}
	name := strings.SplitN(strings.TrimPrefix(s.made.PublicURL, "http://"), ":", 2)[0]
	size := int64(random.IntN(512 << 10))
	if random.IntN(2) == 0 {
		return c.request("POST", node, name, "/upload", io.LimitReader(&pattern{}, size), func(body io.Reader) error {
			text, err := io.ReadAll(body)
			if err == nil && string(text) != patternSum(size) {
				err = wrongBytes(fmt.Sprintf("an upload of %d bytes arrived with another sum: %q", size, text))
			}
			return err
		})
	}
	return c.request("GET", node, name, fmt.Sprintf("/file?size=%d", size), nil, func(body io.Reader) error {
		sum := sha256.New()
		n, err := io.Copy(sum, body)
		if err == nil && (n != size || hexSum(sum) != patternSum(size)) {
			err = wrongBytes(fmt.Sprintf("a download of %d bytes gave %d with another sum and no error", size, n))
		}
		return err
	})
}

// status is a status that is not OK.
type badStatus int

func (s badStatus) Error() string { return fmt.Sprintf("status %d", int(s)) }

func (c *nodesChaos) request(method string, node int, name, path string, body io.Reader, check func(io.Reader) error) error {
	req, err := http.NewRequest(method, "http://"+c.nodes[node].http+path, body)
	if err != nil {
		return err
	}
	req.Host = name
	resp, err := c.visitor.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.Copy(io.Discard, resp.Body)
		return badStatus(resp.StatusCode)
	}
	return check(resp.Body)
}

func (c *nodesChaos) talk(addr string, random *rand.Rand) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	want, err := io.ReadAll(io.LimitReader(&pattern{}, int64(1+random.IntN(128<<10))))
	if err != nil {
		return err
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		conn.Write(want)
		conn.(*net.TCPConn).CloseWrite()
	})
	got, err := io.ReadAll(conn)
	conn.Close()
	sending.Wait()
	if !bytes.HasPrefix(want, got) {
		return wrongBytes(fmt.Sprintf("an echo of %d bytes differs", len(want)))
	}
	if err == nil && len(got) < len(want) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// asker is a visitor of a udp tunnel, who keeps a port: the edge counts each as
// a visitor for a minute.
type asker struct {
	mu   sync.Mutex
	conn net.Conn
	seq  uint64
}

func (a *asker) close() {
	if a.conn != nil {
		a.conn.Close()
	}
}

// packet is one that tells by its number what is in it.
func packet(seq uint64) []byte {
	random := rand.New(rand.NewPCG(seq, 17))
	b := binary.BigEndian.AppendUint64(nil, seq)
	for range random.IntN(1000) {
		b = append(b, byte(random.Uint32()))
	}
	return b
}

// question sends a packet until it is answered, a few times. Answers to earlier
// ones may come in between.
func (a *asker) question(addr string) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil {
		if a.conn, err = net.Dial("udp", addr); err != nil {
			return err
		}
	}
	a.seq++
	want, got := packet(a.seq), make([]byte, 2048)
	for range 4 {
		if _, err = a.conn.Write(want); err != nil {
			return err // of one before, perhaps: nobody listened
		}
		a.conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		for err == nil {
			var n int
			if n, err = a.conn.Read(got); err != nil {
				break
			}
			if n < 8 || !bytes.Equal(got[:n], packet(binary.BigEndian.Uint64(got))) {
				return wrongBytes(fmt.Sprintf("a packet came back as another of %d bytes", n))
			}
			if bytes.Equal(got[:n], want) {
				return nil
			}
		}
	}
	return err
}
