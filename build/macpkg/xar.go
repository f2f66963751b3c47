package macpkg

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"time"
)

// Member is a file of a xar archive; a folder has Members and no Data.
type Member struct {
	Name    string
	Data    []byte
	Members []Member
}

// Xar returns a xar archive: a header of 28 bytes, a compressed table of contents in XML, and the
// heap, which begins with the table's SHA-1. The members are stored uncompressed, because they are
// compressed already.
func Xar(members []Member, when time.Time) ([]byte, error) {
	const checksumSize = sha1.Size
	var toc, heap bytes.Buffer
	heap.Write(make([]byte, checksumSize)) // the table's checksum, once it is known
	id := 0
	var write func(m Member)
	write = func(m Member) {
		id++
		fmt.Fprintf(&toc, "<file id=\"%d\"><name>", id)
		xml.EscapeText(&toc, []byte(m.Name)) // a Buffer never fails
		toc.WriteString("</name>")
		if m.Members != nil {
			toc.WriteString("<type>directory</type><mode>0755</mode><uid>0</uid><gid>0</gid>")
			for _, inner := range m.Members {
				write(inner)
			}
		} else {
			sum := sha1.Sum(m.Data)
			fmt.Fprintf(&toc, "<type>file</type><mode>0644</mode><uid>0</uid><gid>0</gid>"+
				"<data><length>%[1]d</length><offset>%[2]d</offset><size>%[1]d</size><encoding style=\"application/octet-stream\"/>"+
				"<extracted-checksum style=\"sha1\">%[3]x</extracted-checksum><archived-checksum style=\"sha1\">%[3]x</archived-checksum></data>",
				len(m.Data), heap.Len(), sum)
			heap.Write(m.Data)
		}
		toc.WriteString("</file>\n")
	}
	fmt.Fprintf(&toc, "%s<xar><toc><creation-time>%s</creation-time><checksum style=\"sha1\"><size>%d</size><offset>0</offset></checksum>\n",
		xml.Header, when.UTC().Format("2006-01-02T15:04:05"), checksumSize)
	for _, m := range members {
		write(m)
	}
	toc.WriteString("</toc></xar>\n")

	var packed bytes.Buffer
	zw, err := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zw.Write(toc.Bytes()); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	out := []byte("xar!")
	out = binary.BigEndian.AppendUint16(out, 28)
	out = binary.BigEndian.AppendUint16(out, 1)
	out = binary.BigEndian.AppendUint64(out, uint64(packed.Len()))
	out = binary.BigEndian.AppendUint64(out, uint64(toc.Len()))
	out = binary.BigEndian.AppendUint32(out, 1) // SHA-1
	out = append(out, packed.Bytes()...)
	sum := sha1.Sum(packed.Bytes())
	content := heap.Bytes()
	copy(content, sum[:])
	return append(out, content...), nil
}
