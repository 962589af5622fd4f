#include "textflag.h"

TEXT libc_launch_activate_socket_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_launch_activate_socket(SB)

GLOBL	·launchActivateSocket(SB), RODATA, $8
DATA	·launchActivateSocket(SB)/8, $libc_launch_activate_socket_trampoline<>(SB)

TEXT libc_free_trampoline<>(SB),NOSPLIT,$0-0
	JMP	libc_free(SB)

GLOBL	·libcFree(SB), RODATA, $8
DATA	·libcFree(SB)/8, $libc_free_trampoline<>(SB)
