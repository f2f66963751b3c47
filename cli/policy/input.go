// Package policy handles access policies on the command line: their help, reading the document that
// a user supplies, and writing a policy for a person. What a policy means is left to the relay.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/internal/textfile"
	"adit/internal/visible"
)

const (
	maxPolicyFile   = 1 << 20
	maxCertificates = 64 << 10
)

// Fields is the help on what a policy may contain.
const Fields = `A policy is one JSON document. All of its fields are optional:

  deny, allow                           addresses and CIDRs; deny takes precedence
  deny_countries, allow_countries       such as CN, or with a region, such as US-CA
  unknown_country                       deny (default) or allow
  hours                                 {"zone": "Europe/Berlin", "open": [{"days": ["mon"], "from": "08:00", "to": "18:00"}]}
  connections, connections_per_address  how many may be open at the same time
  rate, burst                           requests per second from one address; largest burst
  bandwidth, max_body                   bytes per second; bytes in a request's body
  basic_auth                            [{"name":"ann","password":"…"}]
  sign_in                               {"provider": "company", "emails": ["ann@example.com", "@example.org"]}; also "groups", or "anyone": true
  client_certificates                   {"authorities": "-----BEGIN CERTIFICATE-----…", "names": ["ann@example.com"]}: visitors must present a certificate issued by one of them
  webhooks                              [{"path": "/hooks/github", "provider": "github", "secrets": ["…"]}]: only correctly signed requests are allowed there
  shadow                                true: allow everyone, and only record who would have been refused`

// Unseen is the help on a policy that two people change at the same time.
const Unseen = `You can edit the output of "show --json" and set it again. If somebody else has
changed the policy in the meantime, their change is kept and the exit code is 1.
--if_match does the same for a bare policy. Without either, the policy is
replaced.`

// Input is a policy supplied by the user.
type Input struct {
	Document json.RawMessage
	ETag     string // of the policy that it may replace; empty for any

	ifMatch string // --if_match
	issuer  string // --client_authorities, a file
}

// Flags adds the flags that supplement it.
func (p *Input) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.ifMatch, "if_match", "", `replace the policy only if it still has this etag, which "show --json" prints`)
	cmd.Flags().StringVar(&p.issuer, "client_authorities", "", "PEM file with the authorities for client_certificates, instead of those in the policy")
}

// Read reads a policy, either bare or as printed by "show --json", from a file or from in, which is
// standard input.
func (p *Input) Read(in io.Reader, file []string) error {
	if len(file) == 1 && file[0] != "-" {
		f, err := os.Open(file[0])
		if err != nil {
			return fmt.Errorf("read the policy: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPolicyFile+1))
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	if len(data) > maxPolicyFile {
		return errors.New("the policy is over 1 MiB")
	}
	text, err := textfile.Of(data)
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	data = []byte(text)
	if err := checkPolicy(data); err != nil {
		return err
	}
	var shown struct {
		Policy *json.RawMessage `json:"policy"`
		ETag   string           `json:"etag"`
	}
	p.Document = data
	if json.Unmarshal(data, &shown) == nil && shown.Policy != nil {
		p.Document, p.ETag = *shown.Policy, shown.ETag
		if err := checkPolicy(p.Document); err != nil {
			return err
		}
	}
	if p.issuer != "" {
		if p.Document, err = withAuthorities(p.Document, p.issuer); err != nil {
			return err
		}
	}
	if p.ifMatch != "" {
		p.ETag = p.ifMatch
	}
	p.ETag = command.QuotedTag(p.ETag)
	return nil
}

// withAuthorities adds the certificates in a file to a policy. The rest stays unchanged, including
// fields that this version does not know.
func withAuthorities(document json.RawMessage, file string) (json.RawMessage, error) {
	text, err := ReadCertificates(file)
	if err != nil {
		return nil, err
	}
	var fields, inner map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	const field = "client_certificates"
	if there, ok := fields[field]; ok {
		if err := json.Unmarshal(there, &inner); err != nil {
			return nil, fmt.Errorf("read %s of the policy: %w", field, err)
		}
	}
	if inner == nil {
		inner = make(map[string]json.RawMessage)
	}
	if inner["authorities"], err = json.Marshal(text); err != nil {
		return nil, err
	}
	if fields[field], err = json.Marshal(inner); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// ReadCertificates reads a file of certificates.
func ReadCertificates(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read certificates: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCertificates+1))
	if err != nil {
		return "", fmt.Errorf("read certificates: %w", err)
	}
	switch text := string(data); {
	case len(data) > maxCertificates:
		return "", fmt.Errorf("%s is over 64 KiB", file)
	case strings.Contains(text, "PRIVATE KEY-----"):
		return "", fmt.Errorf("%s contains a private key, which must stay with its owner; give only the certificates", file)
	case !strings.Contains(text, "-----BEGIN CERTIFICATE-----"):
		return "", fmt.Errorf("%s has no PEM certificate, which starts with -----BEGIN CERTIFICATE-----", file)
	default:
		return text, nil
	}
}

// checkPolicy says where text that is not a policy at all goes wrong.
func checkPolicy(text []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the policy is empty; use {} to allow everyone")
	case errors.As(err, &syntax):
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return fmt.Errorf("the policy is not one JSON document: %w, in line %d", err, line)
	case err != nil || object == nil:
		return fmt.Errorf("the policy is not a JSON object, such as {%q: [%q]}", "allow", "203.0.113.0/24")
	}
	return nil
}

// Write writes a policy's document for a person. JSON leaves some characters unescaped that a
// terminal would obey.
func Write(w io.Writer, policy any) {
	text, err := json.MarshalIndent(policy, "", "  ")
	if err != nil {
		text = []byte("{}")
	}
	fmt.Fprintln(w, visible.Lines(string(text)))
}
