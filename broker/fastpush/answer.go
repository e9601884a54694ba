package fastpush

import (
	"net/http"
	"strconv"
	"time"
)

// appendHead appends the head of an answer as net/http writes it. last announces that the
// connection closes.
func appendHead(dst []byte, status, retryAfter, length int, date []byte, last bool) []byte {
	if status == http.StatusOK {
		dst = append(dst, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"...)
	} else {
		dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10)
		dst = append(append(dst, ' '), http.StatusText(status)...)
		dst = append(dst, "\r\nContent-Type: application/json\r\n"...)
	}
	if retryAfter > 0 {
		dst = append(strconv.AppendInt(append(dst, "Retry-After: "...), int64(retryAfter), 10), "\r\n"...)
	}
	if last {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(append(dst, "Date: "...), date...)
	dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), int64(length), 10)
	return append(dst, "\r\n\r\n"...)
}

// dateText is a second in the format of the header Date.
type dateText struct {
	unix int64
	text []byte
}

// date returns now in the format of the header Date. It formats each second once.
func (s *Server) date(now time.Time) []byte {
	d := s.dateCache.Load()
	if unix := now.Unix(); d == nil || d.unix != unix {
		d = &dateText{unix, now.UTC().AppendFormat(nil, http.TimeFormat)}
		s.dateCache.Store(d)
	}
	return d.text
}
