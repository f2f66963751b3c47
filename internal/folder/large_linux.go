package folder

import "syscall"

// largeFile is what opening asks of the system for files of 2 GiB and more. os.Open
// does so by itself; an os.Root does not, and on 32 bits is refused them.
const largeFile = syscall.O_LARGEFILE
