package inspect

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxDecoded limits the size of a body decoded for viewing: a few bytes can expand to gigabytes.
const maxDecoded = 4 << 20

// decode undoes a Content-Encoding for viewing. For a body that was cut, it returns what there is,
// and sets cut. ok is false if nothing could be decoded.
func decode(encoding string, data []byte) (plain []byte, cut, ok bool) {
	codings := strings.Split(encoding, ",")
	if len(codings) > 3 {
		return nil, false, false
	}
	for i := len(codings) - 1; i >= 0; i-- { // the last was applied last (RFC 9110 §8.4)
		r, err := decoder(strings.TrimSpace(codings[i]), data)
		if err != nil {
			return nil, false, false
		}
		out, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
		if c, isCloser := r.(io.Closer); isCloser {
			c.Close()
		}
		if len(out) > maxDecoded {
			out, cut = out[:maxDecoded], true
		}
		if err != nil {
			cut = true
			if len(out) == 0 {
				return nil, false, false
			}
		}
		data = out
	}
	return data, cut, true
}

func decoder(coding string, data []byte) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(bytes.NewReader(data))
	case "deflate":
		// The name means zlib; some servers send the raw data inside it.
		if r, err := zlib.NewReader(bytes.NewReader(data)); err == nil {
			return r, nil
		}
		return flate.NewReader(bytes.NewReader(data)), nil
	case "br":
		return brotli.NewReader(bytes.NewReader(data)), nil
	case "zstd":
		d, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(2*maxDecoded), zstd.WithDecoderMaxWindow(2*maxDecoded))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "", "identity":
		return bufio.NewReader(bytes.NewReader(data)), nil
	}
	return nil, errHead
}
