package secret

import "strings"

// Stream takes secrets out of a text that comes in pieces, also those that lie across pieces. It is for one goroutine.
type Stream struct {
	r    *Redactor
	held string // the end of the text so far, which may be the beginning of a secret
}

// Stream begins a text that comes in pieces.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Add takes the next piece and gives what can be shown now. What may yet become a secret is held back.
func (s *Stream) Add(piece string) string {
	if s.r.none() {
		return piece
	}
	text := s.held + piece
	var out strings.Builder
	i := 0
	for i < len(text) && !s.r.begins(text[i:]) {
		form := ""
		if i+1 < len(text) {
			form = s.r.formAt(text[i:], start(text[i:]))
		}
		if form == "" {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(s.r.marks[form])
		i += len(form)
	}
	s.held = text[i:]
	return s.r.Text(out.String())
}

// End gives what was held back. The stream is at its beginning again.
func (s *Stream) End() string {
	held := s.held
	s.held = ""
	return s.r.Text(held)
}

// begins says whether all of text is the beginning of a secret and more of it may follow.
func (r *Redactor) begins(text string) bool {
	if len(text) < 2 {
		for at := range r.starts {
			if text != "" && byte(at>>8) == text[0] {
				return true
			}
		}
		return false
	}
	for _, form := range r.starts[start(text)] {
		if len(form) > len(text) && strings.HasPrefix(form, text) {
			return true
		}
	}
	return false
}
