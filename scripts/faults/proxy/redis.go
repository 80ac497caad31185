package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // that is how Redis names scripts
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"seckill/lua"
)

// Redis reads RESP. A script goes by its name here, whether its text or its
// digest is sent; any other command by its own.
func Redis() Reader { return redisReader{} }

type redisReader struct{}

// scripts are the names of the scripts by digest; one that was changed goes by
// the name in its header, once its text has been seen.
var scripts = digests(map[string]lua.Script{
	"open": lua.Open, "load": lua.Load, "lift": lua.Lift, "amend": lua.Amend, "fence": lua.Fence, "note": lua.Note,
	"head": lua.Head, "claim": lua.Claim, "settle": lua.Settle, "restock": lua.Restock, "bind": lua.Bind, "cacheitem": lua.CacheItem,
})

func digests(texts map[string]lua.Script) *sync.Map {
	names := &sync.Map{}
	for name, text := range texts {
		names.Store(digest(string(text)), name)
	}
	return names
}

// header begins each script; sale.lua stands before most others.
var header = regexp.MustCompile(`(?m)^-- ([a-z]+)\.lua `)

// learn notes the name of a script whose text is sent.
func learn(sum, text string) {
	if all := header.FindAllStringSubmatch(text, -1); len(all) > 0 {
		scripts.LoadOrStore(sum, all[len(all)-1][1])
	}
}

func digest(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// errLong means that a request is larger than any the functions send.
var errLong = errors.New("the request is too large")

const requestMax = 32 << 20

// Request implements Reader.
func (redisReader) Request(r *bufio.Reader) (Frame, error) {
	var data bytes.Buffer
	n, err := redisLength(r, &data, '*')
	if err != nil {
		return Frame{}, err
	}
	var args []string
	for range n {
		size, err := redisLength(r, &data, '$')
		if err != nil {
			return Frame{}, err
		}
		if size > requestMax || data.Len() > requestMax {
			return Frame{}, errLong
		}
		from := data.Len()
		if _, err := io.CopyN(&data, r, int64(size)+2); err != nil {
			return Frame{}, fmt.Errorf("read an argument: %w", err)
		}
		args = append(args, string(data.Bytes()[from:from+size]))
	}
	return Frame{Data: data.Bytes(), Step: redisStep(args)}, nil
}

// redisLength reads a line of a kind and returns its number.
func redisLength(r *bufio.Reader, data *bytes.Buffer, kind byte) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, fmt.Errorf("read a line: %w", err)
	}
	data.Write(line)
	if line[0] != kind {
		return 0, fmt.Errorf("a line begins with %q", line[0])
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("a length is %q", line)
	}
	return n, nil
}

// aside are commands that keep a connection, not a sale.
const aside = " HELLO CLIENT PING COMMAND CONFIG MULTI INFO "

func redisStep(args []string) Step {
	if len(args) == 0 {
		return Step{}
	}
	command := strings.ToUpper(args[0])
	if strings.Contains(aside, " "+command+" ") {
		return Step{}
	}
	if command != "EVAL" && command != "EVALSHA" {
		return Step{Name: command}
	}
	if len(args) < 3 {
		return Step{}
	}
	sum := args[1]
	if command == "EVAL" {
		sum = digest(args[1])
		learn(sum, args[1])
	}
	keys, err := strconv.Atoi(args[2])
	if err != nil || keys < 0 || 3+keys > len(args) {
		return Step{}
	}
	step := Step{Args: args[3+keys:]} // a probe has no name
	if name, ok := scripts.Load(sum); ok {
		step.Name, _ = name.(string)
	}
	return step
}

// Reply implements Reader.
func (redisReader) Reply(r *bufio.Reader) (Frame, error) {
	data, err := chunk(r)
	return Frame{Data: data, Failed: err == nil && data[0] == '-'}, err
}
