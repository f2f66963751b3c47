package cli

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
)

const (
	maxPolicyFile   = 1 << 20
	maxCertificates = 64 << 10
)

// policyUnseen is the help on a policy that two people change at once.
const policyUnseen = `What "show --json" prints can be changed and set again: if somebody else has
changed the policy meanwhile, theirs stays, and the exit code is 1. --if_match
does the same for a bare policy. Without either, what is there is replaced.`

// policyInput is a policy that a person sets.
type policyInput struct {
	ifMatch  string // --if_match
	issuer   string // --client_authorities, a file
	document json.RawMessage
	etag     string // of the policy that it may replace; empty for any
}

func (p *policyInput) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.ifMatch, "if_match", "", `replace only the policy that has this etag, as "show --json" prints it`)
	cmd.Flags().StringVar(&p.issuer, "client_authorities", "", "PEM file of the authorities whose certificates let visitors in, in place of those in the policy")
}

// read reads a bare policy, or one as "show --json" prints it, from a file or from
// in, which is standard input.
func (p *policyInput) read(in io.Reader, file []string) error {
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
	if err := checkPolicy(data); err != nil {
		return err
	}
	var shown struct {
		Policy *json.RawMessage `json:"policy"`
		ETag   string           `json:"etag"`
	}
	p.document = data
	if json.Unmarshal(data, &shown) == nil && shown.Policy != nil {
		p.document, p.etag = *shown.Policy, shown.ETag
		if err := checkPolicy(p.document); err != nil {
			return err
		}
	}
	if p.issuer != "" {
		if p.document, err = withAuthorities(p.document, p.issuer); err != nil {
			return err
		}
	}
	if p.ifMatch != "" {
		p.etag = p.ifMatch
	}
	p.etag = command.QuotedTag(p.etag)
	return nil
}

// withAuthorities puts the certificates of a file into a policy. The rest of it stays
// as it is, also what this version does not know.
func withAuthorities(document json.RawMessage, file string) (json.RawMessage, error) {
	text, err := readPEM(file)
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

// readPEM reads a file of certificates.
func readPEM(file string) (string, error) {
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
		return "", fmt.Errorf("%s has a private key in it, which stays with its owner: give the certificates only", file)
	case !strings.Contains(text, "-----BEGIN CERTIFICATE-----"):
		return "", fmt.Errorf("%s has no certificate as PEM, which begins with -----BEGIN CERTIFICATE-----", file)
	default:
		return text, nil
	}
}

// checkPolicy says where what is no policy at all goes wrong.
func checkPolicy(text []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the policy is empty; {} lets everybody in")
	case errors.As(err, &syntax):
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return fmt.Errorf("the policy is not one JSON document: %w, in line %d", err, line)
	case err != nil || object == nil:
		return fmt.Errorf("the policy is not a JSON object, as {%q: [%q]}", "allow", "203.0.113.0/24")
	}
	return nil
}
