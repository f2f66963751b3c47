package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"adit/tunnel/relay/sentence"
)

// CertificateError turns err, which occurred while reading tls_cert and tls_key, into an
// error that says what to do about it.
func (c Config) CertificateError(err error) error {
	for _, file := range []struct{ key, path string }{{"tls_cert", c.TLSCert}, {"tls_key", c.TLSKey}} {
		if _, fault := os.ReadFile(file.path); fault != nil {
			return sentence.File(file.key, file.path, fault)
		}
	}
	// crypto/tls describes the fault after its package prefix.
	cause := err
	for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(inner) {
		cause = inner
	}
	return sentence.New(fmt.Sprintf("tls_cert: %s and its key %s cannot be used: %s; both are PEM files, the certificate first and then those of its issuers",
		c.TLSCert, c.TLSKey, strings.TrimPrefix(cause.Error(), "tls: ")), err)
}
