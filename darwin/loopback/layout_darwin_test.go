package loopback

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An ioctl says in its number how much the kernel copies (IOCPARM_LEN of <sys/ioccom.h>): just what is made
// here, or the kernel reads what is behind it. "go vet" for darwin compiles these or does not.
var (
	address unix.RawSockaddrInet4

	_ [aliasReqSize]byte = [unix.SIOCAIFADDR >> 16 & 0x1fff]byte{}
	_ [ifReqSize]byte    = [unix.SIOCDIFADDR >> 16 & 0x1fff]byte{}
	_ [nameSize]byte     = [unix.IFNAMSIZ]byte{}
	_ [sockaddrSize]byte = [unsafe.Sizeof(address)]byte{}
	_ [0]byte            = [unsafe.Offsetof(address.Len)]byte{}
	_ [1]byte            = [unsafe.Offsetof(address.Family)]byte{}
	_ [4]byte            = [unsafe.Offsetof(address.Addr)]byte{}
	_ [afInet]byte       = [unix.AF_INET]byte{}
)
