package pty

import (
	"os"

	"golang.org/x/sys/unix"
)

// Open makes a terminal. What is written to slave is read from master, and the other way round.
// Reads of master have deadlines; they fail with EIO when nobody has the slave open. Needs Linux 4.13.
func Open() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	err = control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return os.NewSyscallError("TIOCSPTLCK", err)
		}
		// Not by its name: /dev/pts may be another instance.
		peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			return os.NewSyscallError("TIOCGPTPEER", errno)
		}
		slave = os.NewFile(peer, "terminal")
		return nil
	})
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// Is tells whether f is a terminal.
func Is(f *os.File) bool {
	return f != nil && control(f, func(fd int) error {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	}) == nil
}

// Resize gives one terminal the size of another, which tells its programs. Nothing happens when
// either is none.
func Resize(to, from *os.File) {
	_ = control(from, func(fd int) error {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err != nil {
			return err
		}
		return control(to, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	})
}

// Mode is how a terminal treats what is typed.
type Mode struct{ t unix.Termios }

// Raw passes every octet on as it is, both ways, and returns the mode of before.
func Raw(f *os.File) (Mode, error) {
	var before Mode
	err := control(f, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return os.NewSyscallError("TCGETS", err)
		}
		before.t = *t
		t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		return os.NewSyscallError("TCSETS", unix.IoctlSetTermios(fd, unix.TCSETS, t))
	})
	return before, err
}

// Get reads the mode of a terminal.
func Get(f *os.File) (m Mode, err error) {
	err = control(f, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			m.t = *t
		}
		return os.NewSyscallError("TCGETS", err)
	})
	return m, err
}

// Set sets a mode when what was written has been sent.
func (m Mode) Set(f *os.File) error {
	return control(f, func(fd int) error {
		return os.NewSyscallError("TCSETSW", unix.IoctlSetTermios(fd, unix.TCSETSW, &m.t))
	})
}

// Foreground tells whether the caller's process group may read the terminal f now: the group is in
// the foreground, or the terminal does not control it at all.
func Foreground(f *os.File) bool {
	front := 0
	err := control(f, func(fd int) (err error) {
		front, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return err != nil || front == unix.Getpgrp()
}

// control uses a descriptor without making it blocking, as File.Fd would.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}
