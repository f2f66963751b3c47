package macpkg

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// File is a file or a folder of a package. Paths are relative and use slashes.
type File struct {
	Path string
	Mode uint32 // permissions
	GID  uint32 // 0 is wheel, 80 is admin; the owner is always root
	Dir  bool
	Data []byte
}

// Tree is what a package installs: its files with all folders above them, in the order that both
// the archive and the bill of materials use.
type Tree []File

// NewTree adds the folders that contain the files. Folders that are not listed belong to root and
// the group of the first file in them.
func NewTree(files []File) Tree {
	have := map[string]bool{}
	for _, f := range files {
		have[f.Path] = true
	}
	tree := slices.Clone(files)
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "." && !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			gid := f.GID
			if !strings.Contains(dir, "/") {
				gid = 80 // the folders at the top are the administrators'
				if dir == "Library" {
					gid = 0
				}
			}
			tree = append(tree, File{Path: dir, Mode: 0o755, GID: gid, Dir: true})
		}
	}
	slices.SortFunc(tree, func(a, b File) int { return cmp.Compare(order(a.Path), order(b.Path)) })
	return tree
}

// order sorts a folder directly before its contents.
func order(p string) string { return strings.ReplaceAll(p, "/", "\x00") }

// mode returns the file's mode with its type, as in stat.
func (f File) mode() uint32 {
	if f.Dir {
		return 0o040000 | f.Mode
	}
	return 0o100000 | f.Mode
}

// Size returns the number of files and folders, and the size of all content.
func (t Tree) Size() (count int, bytes int64) {
	for _, f := range t {
		bytes += int64(len(f.Data))
	}
	return len(t) + 1, bytes
}
