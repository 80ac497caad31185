package proxy

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// MySQL reads the packets of clients. A statement goes by its verb and table, a
// COMMIT also by the last write of its transaction.
func MySQL() Reader { return &mysqlReader{} }

type mysqlReader struct {
	wrote string // the last write of the transaction under way
}

const (
	packetHead = 4 // length and number of a packet
	comQuery   = 3
	// errPacket begins the answer to a statement that failed.
	errPacket = 0xff
)

// Request implements Reader.
func (m *mysqlReader) Request(r *bufio.Reader) (Frame, error) {
	head, err := r.Peek(packetHead)
	if err != nil {
		return Frame{}, fmt.Errorf("read a packet: %w", err)
	}
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	data := make([]byte, packetHead+size)
	if _, err := io.ReadFull(r, data); err != nil {
		return Frame{}, fmt.Errorf("read a packet: %w", err)
	}
	// A command is the first packet of its exchange; what comes at log-in is not.
	if data[3] != 0 || size < 2 || data[packetHead] != comQuery {
		return Frame{Data: data}, nil
	}
	const enough = 1000
	return Frame{Data: data, Step: m.step(string(data[packetHead+1 : min(len(data), packetHead+1+enough)]))}, nil
}

func (m *mysqlReader) step(statement string) Step {
	words := strings.Fields(statement)
	if len(words) == 0 {
		return Step{}
	}
	switch verb := strings.ToUpper(words[0]); verb {
	case "START":
		m.wrote = ""
		return Step{Name: "BEGIN"}
	case "INSERT", "DELETE", "UPDATE":
		at := 1
		if verb != "UPDATE" {
			at = 2 // INTO or FROM
		}
		m.wrote = verb + " " + word(words, at)
		return Step{Name: m.wrote}
	case "COMMIT":
		if m.wrote == "" {
			return Step{Name: "COMMIT nothing"}
		}
		return Step{Name: "COMMIT " + m.wrote}
	case "SELECT":
		return Step{Name: "SELECT" + source(words)}
	default: // SET, ROLLBACK
		return Step{}
	}
}

func word(words []string, at int) string {
	if at < len(words) {
		return strings.Trim(words[at], "`(")
	}
	return ""
}

// source is the first table that a SELECT reads.
func source(words []string) string {
	for i, w := range words {
		if w == "FROM" {
			if table := word(words, i+1); table != "" {
				return " " + table
			}
		}
	}
	return ""
}

// Reply implements Reader.
func (*mysqlReader) Reply(r *bufio.Reader) (Frame, error) {
	data, err := chunk(r)
	return Frame{Data: data, Failed: len(data) > packetHead && data[packetHead] == errPacket}, err
}
