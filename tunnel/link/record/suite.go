package record

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/pion/dtls/v3/pkg/crypto/prf"
	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"
)

// Suite is a cipher suite of DTLS 1.2, by its IANA number.
type Suite uint16

// The suites: ephemeral key exchange, ECDSA certificates and an AEAD, nothing else.
const (
	AES128GCM        Suite = 0xc02b // RFC 5289
	AES256GCM        Suite = 0xc02c // RFC 5289
	ChaCha20Poly1305 Suite = 0xcca9 // RFC 7905
)

func (s Suite) String() string {
	switch s {
	case AES128GCM:
		return "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	case AES256GCM:
		return "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	case ChaCha20Poly1305:
		return "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
	}
	return fmt.Sprintf("suite %#04x", uint16(s))
}

// preferred is the order for this machine: AES first if it has instructions for it.
func preferred() []Suite {
	if (cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ) || (cpu.ARM64.HasAES && cpu.ARM64.HasPMULL) || cpu.S390X.HasAESGCM {
		return []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305}
	}
	return []Suite{ChaCha20Poly1305, AES128GCM, AES256GCM}
}

// shape is what the key schedule and the record layout need to know about a suite.
type shape struct {
	key, iv  int
	explicit int // bytes of nonce in each record
	hash     func() hash.Hash
	aead     func(key []byte) (cipher.AEAD, error)
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (s Suite) shape() (shape, error) {
	switch s {
	case AES128GCM:
		return shape{16, 4, 8, sha256.New, newGCM}, nil
	case AES256GCM:
		return shape{32, 4, 8, sha512.New384, newGCM}, nil
	case ChaCha20Poly1305:
		return shape{32, 12, 0, sha256.New, chacha20poly1305.New}, nil
	}
	return shape{}, fmt.Errorf("%v is not one of the suites that records are sealed with", s)
}

// deriveHalves derives both directions' protection from the master secret (RFC 5246 §6.3). Each
// direction's records carry the Connection ID that their receiver chose.
func deriveHalves(s Suite, master, clientRandom, serverRandom, clientCID, serverCID []byte) (toServer, toClient *half, err error) {
	sh, err := s.shape()
	if err != nil {
		return nil, nil, err
	}
	keys, err := prf.GenerateEncryptionKeys(master, clientRandom, serverRandom, 0, sh.key, sh.iv, sh.hash)
	if err != nil {
		return nil, nil, fmt.Errorf("derive record keys: %w", err)
	}
	if toServer, err = newHalf(sh, keys.ClientWriteKey, keys.ClientWriteIV, serverCID); err != nil {
		return nil, nil, err
	}
	toClient, err = newHalf(sh, keys.ServerWriteKey, keys.ServerWriteIV, clientCID)
	return toServer, toClient, err
}

// half protects one direction of a session. It must not be used concurrently: it holds the nonce
// and the associated data, so that nothing is allocated.
type half struct {
	aead       cipher.AEAD
	explicit   int
	cid        []byte
	head, tail int
	iv         [12]byte
	nonce      [12]byte
	aad        []byte
}

func newHalf(sh shape, key, iv, cid []byte) (*half, error) {
	aead, err := sh.aead(key)
	if err != nil {
		return nil, fmt.Errorf("set up record protection: %w", err)
	}
	h := &half{
		aead: aead, explicit: sh.explicit, cid: cid,
		head: headerSize + len(cid) + sh.explicit, tail: aead.Overhead(),
	}
	copy(h.iv[:], iv)
	h.nonce = h.iv
	if len(cid) == 0 {
		h.aad = make([]byte, 13)
		return h, nil
	}
	h.tail++ // the record's real type, inside
	// RFC 9146 §5.3: everything except epoch, number and length is the same for every record.
	h.aad = append(h.aad, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, typeCID, byte(len(cid)), typeCID, 0xfe, 0xfd)
	h.aad = append(h.aad, make([]byte, 8)...)
	h.aad = append(h.aad, cid...)
	h.aad = append(h.aad, 0, 0)
	return h, nil
}

// prepare sets up the nonce and the associated data for record number seq with n bytes of content,
// including the type if that is inside.
func (h *half) prepare(typ byte, seq uint64, explicit []byte, n int) {
	if h.explicit > 0 {
		copy(h.nonce[4:], explicit)
	} else { // RFC 7905 §2
		binary.BigEndian.PutUint64(h.nonce[4:], binary.BigEndian.Uint64(h.iv[4:])^seq)
	}
	if len(h.cid) > 0 {
		binary.BigEndian.PutUint64(h.aad[13:], seq)
	} else {
		binary.BigEndian.PutUint64(h.aad, seq)
		h.aad[8], h.aad[9], h.aad[10] = typ, 0xfe, 0xfd
	}
	binary.BigEndian.PutUint16(h.aad[len(h.aad)-2:], uint16(n))
}

// seal makes one record of p: the plaintext starts head bytes after p's start and ends tail bytes
// before p's end. seq holds the epoch in its upper 16 bits.
func (h *half) seal(p []byte, typ byte, seq uint64) {
	n := len(p) - h.head - h.tail
	outer := typ
	content := p[h.head : h.head+n]
	if len(h.cid) > 0 {
		outer = typeCID
		content = p[h.head : h.head+n+1]
		content[n] = typ
	}
	p[0], p[1], p[2] = outer, 0xfe, 0xfd
	binary.BigEndian.PutUint64(p[3:], seq)
	at := 11 + copy(p[11:], h.cid)
	binary.BigEndian.PutUint16(p[at:], uint16(len(p)-at-2))
	at += 2
	if h.explicit > 0 {
		// The nonce is the record number itself (RFC 9325 §7.2.1), so it cannot repeat.
		binary.BigEndian.PutUint64(p[at:], seq)
	}
	h.prepare(typ, seq, p[at:at+h.explicit], len(content))
	h.aead.Seal(content[:0], h.nonce[:], content, h.aad)
}

// open reverses seal in place. The plaintext is a part of r's body.
func (h *half) open(r rawRecord) (plain []byte, typ byte, ok bool) {
	n := len(r.body) - h.explicit - h.aead.Overhead()
	if n < 0 || (r.typ == typeCID) != (len(h.cid) > 0) {
		return nil, 0, false
	}
	h.prepare(r.typ, r.seq, r.body[:h.explicit], n)
	sealed := r.body[h.explicit:]
	plain, err := h.aead.Open(sealed[:0], h.nonce[:], sealed, h.aad)
	if err != nil {
		return nil, 0, false
	}
	if r.typ != typeCID {
		return plain, r.typ, true
	}
	for i := len(plain) - 1; i >= 0; i-- { // zeros after the type are padding
		if plain[i] != 0 {
			return plain[:i], plain[i], true
		}
	}
	return nil, 0, false
}
