package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// childEnv marks a child process of the tests that is a peer's program.
const childEnv = "ADIT_E2E_CHILD"

// The flags of a child process that is grpc-go's interop client: its test cases
// end the process when they fail.
var (
	grpcCase = flag.String("grpc_case", "", "")
	grpcAddr = flag.String("grpc_addr", "", "")
	grpcName = flag.String("grpc_name", "", "")
	grpcCA   = flag.String("grpc_ca", "", "")
)

// grpcCases are those that gRPC's interop-test-descriptions.md lists and
// grpc-go's client has, but for those of Google's credentials; and two of them
// compressed.
var grpcCases = map[string]func(context.Context, *grpc.ClientConn, testgrpc.TestServiceClient){
	"empty_unary":                 unaryCase(interop.DoEmptyUnaryCall),
	"large_unary":                 unaryCase(interop.DoLargeUnaryCall),
	"client_streaming":            unaryCase(interop.DoClientStreaming),
	"server_streaming":            unaryCase(interop.DoServerStreaming),
	"ping_pong":                   unaryCase(interop.DoPingPong),
	"empty_stream":                unaryCase(interop.DoEmptyStream),
	"cancel_after_begin":          unaryCase(interop.DoCancelAfterBegin),
	"cancel_after_first_response": unaryCase(interop.DoCancelAfterFirstResponse),
	"custom_metadata":             unaryCase(interop.DoCustomMetadata),
	"status_code_and_message":     unaryCase(interop.DoStatusCodeAndMessage),
	"special_status_message":      unaryCase(interop.DoSpecialStatusMessage),
	"timeout_on_sleeping_server":  unaryCase(interop.DoTimeoutOnSleepingServer),
	"unimplemented_service": func(ctx context.Context, conn *grpc.ClientConn, _ testgrpc.TestServiceClient) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
	},
	"unimplemented_method": func(ctx context.Context, conn *grpc.ClientConn, _ testgrpc.TestServiceClient) {
		interop.DoUnimplementedMethod(ctx, conn)
	},
	"compressed_unary": func(ctx context.Context, _ *grpc.ClientConn, c testgrpc.TestServiceClient) {
		interop.DoLargeUnaryCall(ctx, c, grpc.UseCompressor("gzip"))
	},
	"compressed_ping_pong": func(ctx context.Context, _ *grpc.ClientConn, c testgrpc.TestServiceClient) {
		interop.DoPingPong(ctx, c, grpc.UseCompressor("gzip"))
	},
}

func unaryCase(f func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)) func(context.Context, *grpc.ClientConn, testgrpc.TestServiceClient) {
	return func(ctx context.Context, _ *grpc.ClientConn, c testgrpc.TestServiceClient) { f(ctx, c) }
}

// TestGRPCInteropClient is the child process; by itself it does nothing.
func TestGRPCInteropClient(t *testing.T) {
	if *grpcCase == "" {
		t.Skip("is a part of TestGRPCInterop")
	}
	pem, err := os.ReadFile(*grpcCA)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("read the authority: %v", err)
	}
	conn, err := grpc.NewClient("passthrough:///"+*grpcName,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", *grpcAddr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name := range strings.SplitSeq(*grpcCase, ",") {
		grpcCases[name](ctx, conn, testgrpc.NewTestServiceClient(conn))
		fmt.Println("passed:", name)
	}
}

// TestGRPCInterop has grpc-go's interop client and server at the two ends of an
// https tunnel, to a server without TLS and to one with it.
func TestGRPCInterop(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	for scheme, creds := range map[string]credentials.TransportCredentials{
		"http": insecure.NewCredentials(), "h2c": insecure.NewCredentials(), "https": credentials.NewTLS(selfSigned(t, "origin.test")),
	} {
		t.Run(scheme, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			server := grpc.NewServer(grpc.Creds(creds))
			testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
			go server.Serve(ln)
			defer server.Stop()
			name := "grpc-" + scheme + ".localhost"
			made := agent.publish("https", ln.Addr().(*net.TCPAddr).Port, map[string]any{"domain": name, "local_scheme": scheme})
			var names []string
			for one := range grpcCases {
				names = append(names, one)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestGRPCInteropClient$", "-test.timeout=2m", "-grpc_case="+strings.Join(names, ","),
				"-grpc_addr="+relay.https, fmt.Sprintf("-grpc_name=%s:%d", name, portOf(t, relay.https)), "-grpc_ca="+filepath.Join(relay.dir, "ca.pem"))
			cmd.Env = append(os.Environ(), childEnv+"=1", "GRPC_GO_LOG_SEVERITY_LEVEL=error")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
			for _, one := range names {
				if !strings.Contains(out.String(), "passed: "+one+"\n") {
					err = errors.Join(err, fmt.Errorf("%s did not pass", one))
				}
			}
			if err != nil {
				t.Errorf("%v\n%s", err, tail(out.String()))
			}
			agent.inspectGRPC(made.ID)
		})
	}
}

// inspectGRPC looks at one call of the tests' service in the inspector, and makes it
// again.
func (a *agent) inspectGRPC(tunnelID string) {
	a.t.Helper()
	type call struct {
		ID, Method, Path, Error string
		Status                  int
		Response                struct {
			Proto   string
			Headers []struct{ Name, Value string }
		}
	}
	var found call
	await(a.t, "the inspector has the call", func() error { // it reads beside what passes
		var list struct{ Items []call }
		a.ok(http.StatusOK, "GET", "/api/v1/requests?q=EmptyCall&tunnel_id="+tunnelID, nil, &list)
		if len(list.Items) == 0 || list.Items[0].Path != "/grpc.testing.TestService/EmptyCall" || list.Items[0].Method != "POST" || list.Items[0].Status != 200 {
			return fmt.Errorf("%+v", list.Items)
		}
		found = list.Items[0]
		return nil
	})
	for _, request := range [][2]string{{"GET", ""}, {"POST", "/replay"}} {
		var c call
		a.ok(http.StatusOK, request[0], "/api/v1/requests/"+found.ID+request[1], nil, &c)
		if c.Response.Proto != "HTTP/2.0" || c.Status != 200 || !slices.Contains(c.Response.Headers, struct{ Name, Value string }{"grpc-status", "0"}) {
			a.t.Errorf("%s: got %+v", request[0], c)
		}
	}
}

// selfSigned is a server's configuration with a certificate that nobody vouches for.
func selfSigned(t *testing.T, name string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
