package zonefile

import (
	"bytes"
	"maps"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestFixtureParses holds the promise of the package comment: a helper of any release may meet an
// answerer of any other.
func TestFixtureParses(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.zone")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]netip.Addr{
		"a.b.c":         netip.MustParseAddr("127.0.64.253"),
		"api.web":       netip.MustParseAddr("127.0.64.2"),
		"stopped":       {},
		"web":           netip.MustParseAddr("127.0.64.1"),
		"xn--bcher-kva": netip.MustParseAddr("127.0.64.77"),
	}
	if f.BootID != "5b0c9a1e-6d0f-4d3e-9a53-0d6f2f0b8a11" || f.Generation != 42 || !maps.Equal(f.Names, want) {
		t.Errorf("got %+v", f)
	}
	if got := Encode(f); !bytes.Equal(got, data) {
		t.Errorf("encoded again:\n%s", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const head = "minhost-zone 1 boot 7 1\n"
	long := strings.Repeat("a", 63)
	cases := map[string]struct{ text, want string }{
		"nothing":             {"", "no end"},
		"foreign":             {"127.0.0.1 localhost\n", "not a zone file"},
		"later format":        {"minhost-zone 2 boot 7 0 more\n", `format "2": this program reads format 1`},
		"short header":        {"minhost-zone 1 boot 7\n", "header of 4 fields"},
		"no boot id":          {"minhost-zone 1  7 0\n", "boot id of 0 octets"},
		"boot id with a dot":  {"minhost-zone 1 a.b 7 0\n", "only letters"},
		"long boot id":        {"minhost-zone 1 " + long + "bb 7 0\n", "boot id of 65 octets"},
		"negative generation": {"minhost-zone 1 boot -7 0\n", "generation"},
		"padded generation":   {"minhost-zone 1 boot 07 0\n", "generation"},
		"count too large":     {"minhost-zone 1 boot 7 16385\n", "count"},
		"padded count":        {"minhost-zone 1 boot 7 +1\nweb -\n", "count"},
		"cut at a line":       {"minhost-zone 1 boot 7 2\napi -\n", "says 2 names, the file has 1"},
		"cut in a line":       {head + "web 127.0.64.1", "no end"},
		"a line too many":     {"minhost-zone 1 boot 7 0\nweb -\n", "says 0 names"},
		"empty line":          {head + "\n", "no address"},
		"no address":          {head + "web\n", "no address"},
		"two spaces":          {head + "web  127.0.64.1\n", "not an address"},
		"CRLF":                {head + "web 127.0.64.1\r\n", "not an address"},
		"comment":             {head + "# web -\n", "only a-z"},
		"upper case":          {head + "Web -\n", "only a-z"},
		"underscore":          {head + "a_b -\n", "only a-z"},
		"control character":   {head + "a\x1bb -\n", `"\x1b"`},
		"empty label":         {head + "a..b -\n", "empty label"},
		"trailing dot":        {head + "web. -\n", "empty label"},
		"leading hyphen":      {head + "-a -\n", "hyphen"},
		"trailing hyphen":     {head + "a-.b -\n", "hyphen"},
		"four labels":         {head + "a.b.c.d -\n", "4 labels, at most 3"},
		"label of 64":         {head + long + "a -\n", "label of 64 octets"},
		"name of 201":         {head + long + "." + long + "." + long + ".aaaaaaaaa -\n", "name of 201 octets"},
		"reserved host":       {head + "host 127.0.64.1\n", "reserved"},
		"reserved minhost":    {head + "minhost -\n", "reserved"},
		"below the range":     {head + "web 127.0.64.0\n", "not in 127.0.64.1 to 127.0.64.253"},
		"the host's address":  {head + "web 127.0.64.254\n", "not in"},
		"localhost":           {head + "web 127.0.0.1\n", "not in"},
		"off the host":        {head + "web 192.0.2.1\n", "not in"},
		"IPv6":                {head + "web ::1\n", "not in"},
		"mapped":              {head + "web ::ffff:127.0.64.1\n", "not in"},
		"with a zone":         {head + "web fe80::1%lo\n", "not in"},
		"leading zero":        {head + "web 127.0.64.01\n", "not an address"},
		"twice":               {"minhost-zone 1 boot 7 2\nweb -\nweb -\n", "not ascending"},
		"out of order":        {"minhost-zone 1 boot 7 2\nweb -\napi -\n", "not ascending"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := Decode([]byte(c.text))
			if err == nil {
				t.Fatalf("decoded %+v", f)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want it to say %q", err, c.want)
			}
		})
	}
}

// TestLimitsAreReachable: what the limits allow is taken, and fits in MaxBytes.
func TestLimitsAreReachable(t *testing.T) {
	name := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63)
	if err := CheckName(name); err != nil {
		t.Error(err)
	}
	f := File{BootID: strings.Repeat("f", 64), Generation: 1<<64 - 1, Names: map[string]netip.Addr{}}
	for i := range MaxNames {
		f.Names[strings.Repeat("a", 60)+"."+label(i)+"."+strings.Repeat("c", 63)] = lastAddr
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(Encode(f))
	if err != nil || !maps.Equal(got.Names, f.Names) {
		t.Fatalf("largest file: %v", err)
	}
	f.Names["one-more"] = lastAddr
	if f.Check() == nil {
		t.Error("a name above MaxNames passed Check")
	}
	if _, err := Decode(Encode(f)); err == nil {
		t.Error("a name above MaxNames was decoded")
	}
	if _, err := Decode(make([]byte, MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a file above MaxBytes: %v", err)
	}
}

// label is 63 octets long and differs for each i below 26^3.
func label(i int) string {
	return strings.Repeat("n", 60) + string([]byte{byte('a' + i/676%26), byte('a' + i/26%26), byte('a' + i%26)})
}

func TestErrorsArePrintable(t *testing.T) {
	_, err := Decode([]byte("minhost-zone 1 boot 7 1\nweb \x1b[31m" + strings.Repeat("\xff", 1000) + "\n"))
	if err == nil {
		t.Fatal("decoded")
	}
	for _, c := range []byte(err.Error()) {
		if c < ' ' || c > '~' {
			t.Fatalf("error holds octet %#x: %q", c, err)
		}
	}
	if len(err.Error()) > 400 {
		t.Errorf("error of %d octets", len(err.Error()))
	}
}
