package macpkg

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"time"
)

// Archive returns the tree as a gzipped cpio archive in the old character
// format (cpio(5), odc), which is what the installer reads.
func (t Tree) Archive(when time.Time, level int) ([]byte, error) {
	var raw bytes.Buffer
	entry := func(inode int, name string, mode, gid uint32, data []byte) {
		links := 1
		if mode&0o170000 == 0o040000 {
			links = 2
		}
		fmt.Fprintf(&raw, "070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011o", 1, inode&0o777777, mode, 0, gid, links, 0, when.Unix(), len(name)+1, len(data))
		raw.WriteString(name + "\x00")
		raw.Write(data)
	}
	entry(1, ".", 0o040755, 80, nil)
	for i, f := range t {
		entry(i+2, "./"+f.Path, f.mode(), f.GID, f.Data)
	}
	fmt.Fprintf(&raw, "070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011o", 0, 0, 0, 0, 0, 1, 0, 0, len("TRAILER!!!")+1, 0)
	raw.WriteString("TRAILER!!!\x00")
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	if _, err := zw.Write(raw.Bytes()); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
