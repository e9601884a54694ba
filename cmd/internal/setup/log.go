package setup

import (
	"context"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/cmd/internal/screen"
)

// millis is the time format of the log.
const millis = "2006-01-02T15:04:05.000Z07:00"

// Log returns the logger of the process and makes go-redis log to it. Call it once in a process,
// since it changes global state. level and format have the values that configs allows.
func Log(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	tty := screen.IsTerminal(w)
	if format == "console" || format == "auto" && tty {
		plain := !tty || os.Getenv("TERM") == "dumb" // zerolog itself respects NO_COLOR
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", NoColor: plain}
	}
	zerolog.TimeFieldFormat = millis
	log := zerolog.New(w).Level(l).With().Timestamp().Logger()
	redis.SetLogger(redisLog{log})
	return log, nil
}

// redisLog logs the messages of go-redis, which otherwise go to stderr. They have debug level: they
// concern single connections, and a failed call returns an error anyway.
type redisLog struct{ log zerolog.Logger }

// Printf implements the interface of redis.SetLogger.
func (r redisLog) Printf(_ context.Context, format string, args ...any) {
	r.log.Debug().Str("from", "go-redis").Msgf(format, args...)
}

// WarnExposed warns of files with secrets that every user of the machine may read.
func WarnExposed(log zerolog.Logger, files []string) {
	if len(files) > 0 {
		log.Warn().Strs("files", files).Msg("every user of this machine may read these files with secrets; use chmod o-r")
	}
}

// WarnUnknown warns of variables that belong to no setting.
func WarnUnknown(log zerolog.Logger, names []string) {
	if len(names) > 0 {
		log.Warn().Strs("variables", names).Msg("these variables belong to no setting and have no effect")
	}
}
