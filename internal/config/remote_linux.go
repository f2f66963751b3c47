package config

import "golang.org/x/sys/unix"

const (
	// mountable is whether a file can be mounted where another is.
	mountable = true
	// cheap is whether a folder is watched without opening all that is in it.
	cheap = true
)

// remote reports whether what is at path may be changed by another machine,
// which the system does not tell of.
func remote(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false // gone since
	}
	switch uint32(st.Type) { //nolint:gosec // magic numbers have 32 bits
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC,
		unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
		0x786f4256, // shared folders of VirtualBox
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x19830326, // BeeGFS
		0x01161970: // GFS2
		return true
	}
	return false
}
