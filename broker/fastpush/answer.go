package fastpush

import (
	"net/http"
	"strconv"
	"time"
)

// appendHead appends the head of an answer, as net/http would write it.
func appendHead(dst []byte, status, later, length int, date []byte, last bool) []byte {
	if status == http.StatusOK {
		dst = append(dst, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"...)
	} else {
		dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10)
		dst = append(append(dst, ' '), http.StatusText(status)...)
		dst = append(dst, "\r\nContent-Type: application/json\r\n"...)
	}
	if later > 0 {
		dst = append(strconv.AppendInt(append(dst, "Retry-After: "...), int64(later), 10), "\r\n"...)
	}
	if last {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(append(dst, "Date: "...), date...)
	dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), int64(length), 10)
	return append(dst, "\r\n\r\n"...)
}

// second is a second as text.
type second struct {
	unix int64
	text []byte
}

// date is now in the form of HTTP; it is written once a second.
func (s *Server) date(now time.Time) []byte {
	d := s.second.Load()
	if unix := now.Unix(); d == nil || d.unix != unix {
		d = &second{unix, now.UTC().AppendFormat(nil, http.TimeFormat)}
		s.second.Store(d)
	}
	return d.text
}
