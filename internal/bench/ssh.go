package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"
)

// sshCipher is the fastest that OpenSSH has where processors have instructions
// for AES, and what adit's transports use there.
const sshCipher = "aes128-gcm@openssh.com"

// startSSH starts sshd in the place of a relay and ssh -R in that of an agent.
// One connection is all that this sshd serves, so that it is one process.
func startSSH(ctx context.Context, dir string, o *origin) (l *lab, f face, err error) {
	l = new(lab)
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if err = sshKeys(ctx, dir); err != nil {
		return l, f, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return l, f, err
	}
	defer listener.Close()
	public, err := freeAddr("127.0.0.1")
	if err != nil {
		return l, f, err
	}
	if l.agent, err = startSSHClient(ctx, dir, listener.Addr(), public, o.httpAddr); err != nil {
		return l, f, err
	}
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second))
	conn, err := listener.Accept()
	if err != nil {
		return l, f, err
	}
	defer conn.Close()
	if l.relay, err = startSSHServer(ctx, dir, conn.(*net.TCPConn)); err != nil {
		return l, f, err
	}
	err = poll(ctx, func() error {
		conn, err := net.Dial("tcp4", public)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return l, f, fmt.Errorf("ssh -R: %w\n%s%s", err, &l.agent.log, &l.relay.log)
	}
	return l, face{tcp: public, origin: o}, nil
}

// sshKeys makes the keys of the host and of the one person who may come.
func sshKeys(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"host", "person"} {
		keygen := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
		if out, err := keygen.CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w\n%s", err, out)
		}
	}
	return nil
}

func startSSHServer(ctx context.Context, dir string, conn *net.TCPConn) (*process, error) {
	// sshd wants it to be there, and its service makes it.
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, err
	}
	socket, err := conn.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	p := &process{cmd: exec.CommandContext(ctx, "/usr/sbin/sshd", "-i", "-e", "-f", "none", //nolint:gosec // keys of this run alone
		"-o", "HostKey="+filepath.Join(dir, "host"), "-o", "AuthorizedKeysFile="+filepath.Join(dir, "person.pub"),
		"-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "PermitRootLogin=yes", "-o", "PidFile=none")}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = socket, socket, &p.log
	return p, p.cmd.Start()
}

func startSSHClient(ctx context.Context, dir string, server net.Addr, public, origin string) (*process, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(server.String())
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, "ssh", "-N", "-F", "none", "-c", sshCipher, "-p", port, "-i", filepath.Join(dir, "person"), //nolint:gosec // addresses of this run alone
		"-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "ExitOnForwardFailure=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-R", public+":"+origin, me.Username+"@127.0.0.1")}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	return p, p.cmd.Start()
}
