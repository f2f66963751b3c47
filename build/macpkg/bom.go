package macpkg

import (
	"encoding/binary"
	"fmt"
	"path"
)

// maxLeaf is how many paths one leaf of a tree holds; more would need inner nodes, which none of
// our packages does.
const maxLeaf = 256

// BOM returns the tree's bill of materials, which the installer compares with the payload and keeps
// as the receipt: a BOMStore with the variables BomInfo, Paths, HLIndex, VIndex and Size64.
func (t Tree) BOM(when time32) ([]byte, error) {
	if len(t)+1 > maxLeaf {
		return nil, fmt.Errorf("a package of %d paths: at most %d are supported", len(t)+1, maxLeaf)
	}
	s := &bomStore{}
	s.add(nil) // the block 0 is the empty one

	all := append(Tree{{Path: ".", Mode: 0o755, GID: 80, Dir: true}}, t...)
	info := be(1, uint32(len(all)), 0)
	s.name("BomInfo", s.add(info))

	ids := map[string]uint32{".": 1}
	var pairs []uint32
	for i, f := range all {
		id := uint32(i + 1)
		ids[f.Path] = id
		parent := uint32(0)
		if f.Path != "." {
			parent = ids[path.Dir(f.Path)]
		}
		details := s.add(pathInfo(f, when))
		value := s.add(be(id, details))
		key := s.add(append(append(be(parent), path.Base(f.Path)...), 0))
		pairs = append(pairs, value, key)
	}
	s.name("Paths", s.tree(4096, pairs))
	s.name("HLIndex", s.tree(4096, nil))
	vtree := s.tree(128, nil)
	vindex := append(be(1, vtree, 0), 0)
	s.name("VIndex", s.add(vindex))
	s.name("Size64", s.tree(4096, nil))
	return s.bytes(), nil
}

// time32 is a time in the store's format: seconds since 1970.
type time32 uint32

// Seconds makes a time for BOM.
func Seconds(unix int64) time32 { return time32(unix) }

// pathInfo is BOMPathInfo2: 1 for a file, 2 for a folder; then architecture, mode, owner, group,
// time, size, and a file's POSIX checksum.
func pathInfo(f File, when time32) []byte {
	kind, sum := byte(1), cksum(f.Data)
	if f.Dir {
		kind, sum = 2, 0
	}
	out := []byte{kind, 1}
	out = binary.BigEndian.AppendUint16(out, 0xf)
	out = binary.BigEndian.AppendUint16(out, uint16(f.mode()))
	out = append(out, be(0, f.GID, uint32(when), uint32(len(f.Data)))...)
	out = append(out, 1)
	out = append(out, be(sum)...)
	return append(out, be(0)...) // no name of a link
}

// cksum returns the checksum of POSIX cksum(1): a CRC over the data and its length.
func cksum(data []byte) uint32 {
	const poly = 0x04c11db7
	crc := uint32(0)
	update := func(b byte) {
		crc ^= uint32(b) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ poly
			} else {
				crc <<= 1
			}
		}
	}
	for _, b := range data {
		update(b)
	}
	for n := len(data); n > 0; n >>= 8 {
		update(byte(n))
	}
	return ^crc
}

// bomStore is a list of blocks, identified by number and in some cases by name.
type bomStore struct {
	blocks [][]byte
	names  []struct {
		name  string
		block uint32
	}
}

func (s *bomStore) add(block []byte) uint32 {
	s.blocks = append(s.blocks, block)
	return uint32(len(s.blocks) - 1)
}

func (s *bomStore) name(name string, block uint32) {
	s.names = append(s.names, struct {
		name  string
		block uint32
	}{name, block})
}

// tree adds a tree with one leaf, whose entries are pairs of value and key.
func (s *bomStore) tree(blockSize uint32, pairs []uint32) uint32 {
	leaf := binary.BigEndian.AppendUint16(nil, 1)
	leaf = binary.BigEndian.AppendUint16(leaf, uint16(len(pairs)/2))
	leaf = append(leaf, be(0, 0)...) // no leaf after it, none before it
	leaf = append(leaf, be(pairs...)...)
	if short := int(blockSize) - len(leaf); short > 0 {
		leaf = append(leaf, make([]byte, short)...)
	}
	child := s.add(leaf)
	head := append([]byte("tree"), be(1, child, blockSize, uint32(len(pairs)/2))...)
	return s.add(append(head, 0))
}

// bytes encodes the store: a header, the blocks, the table of blocks, and the table of names.
func (s *bomStore) bytes() []byte {
	const headerSize = 512
	out := make([]byte, headerSize)
	index := be(uint32(len(s.blocks)))
	for _, block := range s.blocks {
		if len(block) == 0 {
			index = append(index, be(0, 0)...)
			continue
		}
		index = append(index, be(uint32(len(out)), uint32(len(block)))...)
		out = append(out, block...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	index = append(index, be(2, 0, 0, 0, 0)...) // a free list of two empty entries
	vars := be(uint32(len(s.names)))
	for _, n := range s.names {
		vars = append(vars, be(n.block)...)
		vars = append(vars, byte(len(n.name)))
		vars = append(vars, n.name...)
	}
	varsAt := uint32(len(out))
	out = append(out, vars...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	indexAt := uint32(len(out))
	out = append(out, index...)
	used := 0
	for _, block := range s.blocks {
		if len(block) > 0 {
			used++
		}
	}
	copy(out, "BOMStore")
	copy(out[8:], be(1, uint32(used), indexAt, uint32(len(index)), varsAt, uint32(len(vars))))
	return out
}

// be returns numbers in big-endian order.
func be(numbers ...uint32) []byte {
	var out []byte
	for _, n := range numbers {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}
