package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// forms gives the texts under which a value may appear, the value itself first.
func forms(value string) []string {
	clean := strings.ToValidUTF8(value, "\uFFFD") // what is left of bytes that are not UTF-8 in a stored text
	out := []string{value, clean, url.QueryEscape(value), url.PathEscape(value), escapeAll(value)}
	out = append(out, jsonForms(clean)...)
	for _, form := range out[2:5] {
		out = append(out, lowerEscapes(form))
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		out = append(out, base64Forms(enc, value)...)
	}
	return out
}

// jsonForms gives the value as JSON writers put it into a string: with and without the escapes for HTML, and with every
// character above ASCII escaped.
func jsonForms(value string) []string {
	var out []string
	for _, html := range []bool{false, true} {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(html)
		if enc.Encode(value) != nil {
			continue // a string can always be encoded
		}
		text := strings.Trim(buf.String(), "\n")
		text = text[1 : len(text)-1]
		out = append(out, text, asciiJSON(text), strings.ReplaceAll(text, "/", `\/`))
	}
	return out
}

// asciiJSON escapes what stands above ASCII, as many JSON writers do.
func asciiJSON(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&0xf])
		}
	}
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			unit(r)
		default: // a surrogate pair
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		}
	}
	return b.String()
}

// escapeAll is the strict form of percent-encoding, where everything but letters, digits and -._~ is escaped, as
// encodeURIComponent and form encoders of other languages do.
func escapeAll(value string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xf])
		}
	}
	return b.String()
}

// lowerEscapes writes the hex digits of percent escapes in lower case: %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// base64Forms gives the value encoded alone, with and without padding, and the part of a longer encoding that depends on
// nothing but the value, for each of the three places where it can begin within a group of three bytes.
func base64Forms(enc *base64.Encoding, value string) []string {
	out := []string{enc.EncodeToString([]byte(value)), enc.WithPadding(base64.NoPadding).EncodeToString([]byte(value))}
	for before := range 3 {
		text := enc.EncodeToString(append(make([]byte, before), value...))
		first := (before*8 + 5) / 6           // characters that hold bits of what stands before
		last := (before + len(value)) * 8 / 6 // whole characters up to the value's end
		out = append(out, text[first:last])
	}
	return out
}
