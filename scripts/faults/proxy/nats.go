package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// NATS reads the text protocol. A publish goes by its subject's kind; its
// answer is the message that comes to its reply subject.
func NATS() Reader { return &natsReader{subscribed: map[string]string{}} }

type natsReader struct {
	mu         sync.Mutex
	subscribed map[string]string // subjects by the number of the subscription
}

// kinds name what is published, by the beginning of its subject.
var kinds = []struct{ prefix, name string }{
	{"seckill.claims.", "publish CLAIMS"},
	{"seckill.orders.", "publish ORDERS"},
	{"seckill.dead.", "publish DEAD"},
	{"$JS.API.CONSUMER.MSG.NEXT.", "pull"},
	{"$JS.API.STREAM.INFO.", "stream info"},
	{"$JS.API.STREAM.CREATE.", "stream create"},
	{"$JS.API.CONSUMER.INFO.", "consumer info"},
	{"$JS.API.CONSUMER.CREATE.", "consumer create"},
	{"$JS.API.CONSUMER.DURABLE.CREATE.", "consumer create"},
}

const ackPrefix = "$JS.ACK."

// message is a line of the protocol that carries a payload.
type message struct {
	op, subject, reply string
	sid                string // of the subscription that it is for
	size               int
}

// Request implements Reader.
func (n *natsReader) Request(r *bufio.Reader) (Frame, error) {
	data, m, err := natsFrame(r)
	if m.op == "SUB" {
		n.mu.Lock()
		n.subscribed[m.sid] = m.subject
		n.mu.Unlock()
	}
	frame := Frame{Data: data, Token: m.reply, Mute: m.reply == ""}
	if err != nil || (m.op != "PUB" && m.op != "HPUB") {
		return frame, err
	}
	if strings.HasPrefix(m.subject, ackPrefix) {
		frame.Step.Name = answerKind(data[len(data)-m.size-2:])
		return frame, nil
	}
	for _, kind := range kinds {
		if strings.HasPrefix(m.subject, kind.prefix) {
			frame.Step.Name = kind.name
		}
	}
	return frame, nil
}

// answerKind names what a consumer says of a message.
func answerKind(payload []byte) string {
	switch {
	case bytes.HasPrefix(payload, []byte("+ACK")) || bytes.Equal(payload, []byte("\r\n")):
		return "ack"
	case bytes.HasPrefix(payload, []byte("-NAK")):
		return "nak"
	case bytes.HasPrefix(payload, []byte("+TERM")):
		return "term"
	}
	return ""
}

// Reply implements Reader. Of what answers a pull only claims count; they come
// under their own subject to the subscription that the pull named.
func (n *natsReader) Reply(r *bufio.Reader) (Frame, error) {
	data, m, err := natsFrame(r)
	frame := Frame{Data: data, Token: m.subject, Mute: m.op != "MSG" && m.op != "HMSG"}
	frame.Failed = bytes.Contains(data, []byte("\r\nNATS/1.0 ")) || bytes.Contains(data, []byte(`"error":{`))
	if strings.HasPrefix(m.reply, ackPrefix) {
		frame.Failed = false // a claim, whatever its headers and data are
		n.mu.Lock()
		frame.Token = n.subscribed[m.sid]
		n.mu.Unlock()
	}
	return frame, err
}

// natsFrame reads a line and the payload that belongs to it.
func natsFrame(r *bufio.Reader) ([]byte, message, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, message{}, fmt.Errorf("read a line: %w", err)
	}
	m := parseLine(string(line))
	data := bytes.Clone(line)
	if m.size < 0 {
		return data, m, nil
	}
	if m.size > requestMax {
		return nil, m, errLong
	}
	payload := make([]byte, m.size+2)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, m, fmt.Errorf("read a payload: %w", err)
	}
	return append(data, payload...), m, nil
}

// parseLine returns size -1 for a line without a payload. The optional field is
// the reply; sizes stand at the end.
func parseLine(line string) message {
	f := strings.Fields(line)
	m := message{size: -1}
	if len(f) == 0 {
		return m
	}
	m.op = strings.ToUpper(f[0])
	if m.op == "SUB" && len(f) >= 3 {
		m.subject, m.sid = f[1], f[len(f)-1]
	}
	// The number of fields with a reply.
	full := map[string]int{"PUB": 4, "HPUB": 5, "MSG": 5, "HMSG": 6}[m.op]
	if full == 0 || len(f) < full-1 {
		return m
	}
	m.subject = f[1]
	received := m.op == "MSG" || m.op == "HMSG"
	if received {
		m.sid = f[2]
	}
	switch {
	case len(f) == full && received:
		m.reply = f[3]
	case len(f) == full:
		m.reply = f[2]
	}
	if size, err := strconv.Atoi(f[len(f)-1]); err == nil && size >= 0 {
		m.size = size
	}
	return m
}
