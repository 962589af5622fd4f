package darwin

import "testing"

func TestRelease(t *testing.T) {
	for text, want := range map[string]string{
		"ProductName:\t\tmacOS\nProductVersion:\t\t26.0\nBuildVersion:\t\t25A354\n":                                  "macOS 26.0 (25A354)",
		"ProductName:    Mac OS X\nProductVersion: 10.15.7\nBuildVersion:   19H15\n":                                 "Mac OS X 10.15.7 (19H15)",
		"ProductName:\t\tmacOS\nProductVersion:\t\t13.3.1\nProductVersionExtra:\t(a)\nBuildVersion:\t\t22E772610a\n": "macOS 13.3.1 (a) (22E772610a)",
		"":                                   "",
		"ProductName:\nProductVersion: 26\n": "",
	} {
		if got, err := parseRelease(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}
