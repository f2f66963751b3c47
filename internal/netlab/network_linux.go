package netlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/simnet"
)

// The addresses of a network's hosts.
const (
	NearAddr = "10.98.0.1"
	FarAddr  = "10.98.0.2"
)

const pathEnv = "ADIT_NETLAB_PATH"

// Network is two hosts and the path between them.
type Network struct {
	Near, Far *Space
	impairer  *exec.Cmd
	hold      io.Closer // the impairer ends when it is closed
	said      bytes.Buffer
}

// Report is what a path has seen.
type Report struct {
	// Late is by how much packets were later than the path specifies, because the machine had other
	// work: on average, and at most.
	Late, LateMost time.Duration
	// There is the direction from near to far.
	There, Back simnet.LinkStats
}

// New creates two hosts. The path between them is a separate process, which runs this program
// again: its main must call Main first. The error is unix.EPERM if namespaces are not allowed.
func New(path Path) (_ *Network, err error) {
	n := new(Network)
	defer func() {
		if err != nil {
			n.closeSpaces()
		}
	}()
	var devices [2]*os.File
	for i, host := range []struct {
		space       **Space
		addr, other string
	}{{&n.Near, NearAddr, FarAddr}, {&n.Far, FarAddr, NearAddr}} {
		if *host.space, err = NewSpace(); err != nil {
			return nil, err
		}
		if err := (*host.space).Do(func() (err error) {
			if devices[i], err = tun("adit0"); err != nil || path.TCP == "" {
				return err
			}
			if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(path.TCP), 0); err != nil {
				return fmt.Errorf("use %s: %w", path.TCP, err)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		defer devices[i].Close()
		if err := (*host.space).IP(
			"addr add "+host.addr+" peer "+host.other+" dev adit0",
			fmt.Sprintf("link set adit0 mtu %d txqueuelen 10000 up", path.mtu()),
		); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(path)
	if err != nil {
		return nil, err
	}
	n.impairer = exec.Command(os.Args[0])
	n.impairer.Env = append(os.Environ(), pathEnv+"="+string(text))
	n.impairer.Stdout, n.impairer.Stderr = &n.said, os.Stderr
	n.impairer.ExtraFiles = devices[:]
	if n.hold, err = n.impairer.StdinPipe(); err != nil {
		return nil, err
	}
	return n, onThread(func() error {
		Urgent()
		return n.impairer.Start()
	})
}

// Close ends the path and returns its report. Processes in the two hosts are left to whoever
// started them.
func (n *Network) Close() (Report, error) {
	defer n.closeSpaces()
	n.hold.Close()
	if err := n.impairer.Wait(); err != nil {
		return Report{}, fmt.Errorf("the path between two namespaces: %w", err)
	}
	var r Report
	err := json.Unmarshal(n.said.Bytes(), &r)
	return r, err
}

func (n *Network) closeSpaces() {
	for _, s := range []*Space{n.Near, n.Far} {
		if s != nil {
			s.Close()
		}
	}
}

// Main turns this process into the path of a network if New started it as one, and does not return
// in that case. A program that calls New must call Main first of all.
func Main() {
	text, ok := os.LookupEnv(pathEnv)
	if !ok {
		return
	}
	if err := impair(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// impair moves packets between the two devices it was given, until its input
// ends.
func impair(text string) error {
	var path Path
	if err := json.Unmarshal([]byte(text), &path); err != nil {
		return err
	}
	network := simnet.New(1)
	there, back := network.Pair(path.link())
	network.Join("10.0.0.1", "10.0.0.2", there, back)
	var ends [2]*simnet.Conn
	var devices [2]*os.File
	for i := range ends {
		var err error
		if ends[i], err = network.Listen(fmt.Sprintf("10.0.0.%d:1", i+1)); err != nil {
			return err
		}
		if err := unix.SetNonblock(3+i, true); err != nil {
			return fmt.Errorf("the device of host %d: %w", i, err)
		}
		devices[i] = os.NewFile(uintptr(3+i), "tun")
	}
	for i := range ends { // until the process ends
		go take(devices[i], ends[i], ends[1-i].LocalAddr())
		go release(ends[i], devices[i])
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	r := Report{There: there.Stats(), Back: back.Stats()}
	r.Late, r.LateMost = network.Late()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// take brings packets from a device into the network.
func take(device *os.File, into *simnet.Conn, to net.Addr) {
	buf := make([]byte, 1<<16)
	for {
		n, err := device.Read(buf)
		if err != nil {
			if !errors.Is(err, unix.EBADFD) { // which means that its namespace has gone
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
		if _, err := into.WriteTo(buf[:n], to); err != nil {
			return
		}
	}
}

// release gives a device what came through the network.
func release(from *simnet.Conn, device *os.File) {
	buf := make([]byte, 1<<16)
	for {
		n, _, err := from.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = device.Write(buf[:n]) // a device that is not up refuses it: lost
	}
}

// tun makes a TUN device in the present namespace.
func tun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make the TUN device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
