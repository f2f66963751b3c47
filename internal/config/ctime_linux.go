package config

import (
	"io/fs"
	"syscall"
	"time"
)

// ctime is when a file was last changed in any way, where the system tells: nobody
// can set it, as they can the time of its content.
func ctime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
