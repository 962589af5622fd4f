package strict

import "strings"

// Advice says why an account without privileges gets no namespaces on this host, and what an
// administrator can do; read gives the content of a file. Both are "" when no known switch is set.
func Advice(read func(path string) (string, error)) (cause, next string) {
	for _, s := range []struct{ file, off, cause, next string }{
		{"/proc/sys/user/max_user_namespaces", "0", "user namespaces are switched off (user.max_user_namespaces is 0)",
			"sysctl -w user.max_user_namespaces=10000, as root"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are root's here (kernel.unprivileged_userns_clone is 0)",
			"sysctl -w kernel.unprivileged_userns_clone=1, as root"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"AppArmor lets no unconfined program use user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			"an AppArmor profile with `userns,` for this program, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, as root"},
	} {
		if text, err := read(s.file); err == nil && strings.TrimSpace(text) == s.off {
			return s.cause, s.next
		}
	}
	return "", ""
}
