package builtin

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// hosts are the hosts that may be asked.
type hosts []host

// host is one of them.
type host struct {
	name  string // lower case, without brackets
	below bool   // all hosts below name are meant, and not name itself
	port  string // "": the usual port of the scheme
}

// hostName is what names of hosts look like; international ones in their ASCII form.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// readHost reads an item of `hosts`.
func readHost(text string) (host, error) {
	wrong := fmt.Errorf("%q is no host; write example.com, \"*.example.org\" for all below example.org, or localhost:8080 for another port, "+
		"without http:// and without a path", text)
	rest, below := strings.CutPrefix(strings.ToLower(text), "*.")
	u, err := url.Parse("http://" + rest)
	if err != nil || u.Host != rest || u.String() != "http://"+rest {
		return host{}, wrong
	}
	h := host{name: u.Hostname(), below: below, port: u.Port()}
	_, noIP := netip.ParseAddr(h.name)
	if noIP != nil && !hostName.MatchString(h.name) || noIP == nil && below || strings.HasSuffix(rest, ":") {
		return host{}, wrong
	}
	return h, nil
}

// find looks for the host of an address. It says whether the host is among those that may be asked, and whether it is
// named literally there.
func (h hosts) find(u *url.URL) (named, ok bool) {
	name, port := strings.ToLower(u.Hostname()), u.Port()
	if port == usualPort[u.Scheme] {
		port = ""
	}
	for _, one := range h {
		onePort := one.port
		if onePort == usualPort[u.Scheme] {
			onePort = ""
		}
		if onePort != port {
			continue
		}
		if one.below {
			ok = ok || strings.HasSuffix(name, "."+one.name)
		} else if name == one.name {
			return true, true
		}
	}
	return false, ok
}

// usualPort gives the port of an address that names none.
var usualPort = map[string]string{"http": "80", "https": "443"}

func (h hosts) String() string {
	var names []string
	for _, one := range h {
		name := one.name
		if strings.Contains(name, ":") {
			name = "[" + name + "]"
		}
		if one.below {
			name = "*." + name
		}
		if one.port != "" {
			name += ":" + one.port
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// errOwnNetwork is the failure of a connection to an address that no public host has.
var errOwnNetwork = errors.New("its address belongs to the own machine or network")

// special are the addresses that are neither private nor public: the own network, tests, the future, and ways to write or
// reach other addresses.
var special = func() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10"} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

// translated is where networks without IPv4 put its addresses.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// public says whether an address may belong to a host that anybody can ask.
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if translated.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && addr.Zone() == "" &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) })
}
