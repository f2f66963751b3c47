package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

// signing holds the keys and certificates for signatures. If empty, nothing is signed, and pack
// says so.
type signing struct {
	certificate string // PEM, for Windows programs and installers
	key         string
	timestamp   string // address of a timestamp server
	gpgKey      string // for the list of checksums
}

func (s *signing) flags(f *flag.FlagSet) {
	f.StringVar(&s.certificate, "sign-cert", os.Getenv("ADIT_SIGN_CERT"), "code signing certificate (PEM) for Windows")
	f.StringVar(&s.key, "sign-key", os.Getenv("ADIT_SIGN_KEY"), "its key (PEM)")
	f.StringVar(&s.timestamp, "sign-timestamp", os.Getenv("ADIT_SIGN_TIMESTAMP"), "timestamp server for Windows signatures")
	f.StringVar(&s.gpgKey, "gpg-key", os.Getenv("ADIT_GPG_KEY"), "GPG key that signs SHA256SUMS")
}

// windows signs a program or an installer in place.
func (s signing) windows(ctx context.Context, p *packer, file string) error {
	if s.certificate == "" || s.key == "" {
		log.Printf("UNSIGNED: %s (no certificate was given)", filepath.Base(file))
		return nil
	}
	signed := file + ".signed"
	args := []string{"sign", "-certs", s.certificate, "-key", s.key, "-h", "sha256", "-n", "adit"}
	if s.timestamp != "" {
		args = append(args, "-ts", s.timestamp)
	}
	if err := p.run(ctx, "osslsigncode", append(args, "-in", file, "-out", signed)...); err != nil {
		return fmt.Errorf("sign %s: %w", filepath.Base(file), err)
	}
	return os.Rename(signed, file)
}

// list signs the list of checksums, and thereby everything in it.
func (s signing) list(ctx context.Context, p *packer, file string) error {
	signature := file + ".asc"
	if err := os.Remove(signature); err != nil && !os.IsNotExist(err) {
		return err
	}
	if s.gpgKey == "" {
		log.Printf("UNSIGNED: %s (no GPG key was given)", filepath.Base(file))
		return nil
	}
	return p.run(ctx, "gpg", "--batch", "--yes", "--local-user", s.gpgKey, "--armor", "--detach-sign", "--output", signature, file)
}
