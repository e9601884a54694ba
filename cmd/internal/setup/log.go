package setup

import (
	"context"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

const millis = "2006-01-02T15:04:05.000Z07:00"

// Log makes the process's logger, and sends the words of go-redis there, too: both are
// settings of the whole process, so a command calls it once. level and format are as
// configs allows them.
func Log(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	tty := isTerminal(w)
	if format == "console" || format == "auto" && tty {
		plain := !tty || os.Getenv("TERM") == "dumb" // and with NO_COLOR, which zerolog looks at
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", NoColor: plain}
	}
	zerolog.TimeFieldFormat = millis
	log := zerolog.New(w).Level(l).With().Timestamp().Logger()
	redis.SetLogger(redisWords{log})
	return log, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// redisWords takes what go-redis would write to stderr by itself. It is about single
// connections; what comes of it whoever called is told anyway.
type redisWords struct{ log zerolog.Logger }

// Printf implements the interface that redis.SetLogger wants.
func (r redisWords) Printf(_ context.Context, format string, args ...any) {
	r.log.Debug().Str("from", "go-redis").Msgf(format, args...)
}

// WarnExposed names the files with secrets that every user of the machine may read.
func WarnExposed(log zerolog.Logger, files []string) {
	if len(files) > 0 {
		log.Warn().Strs("files", files).Msg("everybody on this machine may read these files with secrets; chmod o-r")
	}
}

// WarnUnknown names the variables that look like settings and are none.
func WarnUnknown(log zerolog.Logger, names []string) {
	if len(names) > 0 {
		log.Warn().Strs("variables", names).Msg("there are no such settings; they have no effect")
	}
}
