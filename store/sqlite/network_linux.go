package sqlite

import "syscall"

// Numbers of file systems, from Linux's magic.h.
var networkShares = map[uint32]string{
	0x6969:     "NFS",
	0x517B:     "SMB",
	0xFF534D42: "CIFS",
	0xFE534D42: "SMB2",
	0x5346414F: "AFS",
}

// networkShare gives the kind of network share that a folder lies on, "" for a local disk or when that is not known.
func networkShare(folder string) string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return ""
	}
	return networkShares[uint32(fs.Type)]
}
