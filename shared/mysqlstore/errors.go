package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"seckill/shared/seckill"
)

// Error numbers of the server that mean something here.
const (
	codeDuplicate     = 1062
	codeUnknown       = 1105 // the embedded engine's number for most things
	codeRecordChanged = 1020
	codeLockWait      = 1205
	codeDeadlock      = 1213
)

var (
	// again: the transaction was rolled back for a reason that another try
	// may not meet.
	againCodes = []uint16{
		codeRecordChanged, codeLockWait, codeDeadlock,
	}
	// away: the server cannot serve this now, through no fault of the data:
	// too many connections, shutting down, killed, read-only, out of space,
	// not a member of its cluster.
	awayCodes = []uint16{
		1021, 1040, 1041, 1047, 1053, 1077, 1078, 1079, 1080, 1114, 1152, 1158, 1159, 1160, 1161,
		1184, 1203, 1226, 1290, 1317, 1637, 1792, 1836, 1927, 1969, 3024, 3032, 3168, 3169,
	}
	// data: the values are what the schema refuses: null, too long, out of
	// range, not in the charset, not a time, a CHECK (MySQL, MariaDB).
	dataCodes = []uint16{1048, 1264, 1265, 1292, 1366, 1406, 1690, 3819, 3854, 4025}
)

// errRaced: a row was not as it had been read a moment ago, because somebody
// else committed in between. The transaction is to be tried again as a whole.
var errRaced = errors.New("another transaction came first")

// errRefused: the schema refuses a row that was to be written.
var errRefused = errors.New("refused by the schema")

// commitError is the failure of a COMMIT: the server may have done it.
type commitError struct{ cause error }

// Error implements error.
func (e *commitError) Error() string { return "outcome of COMMIT unknown: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *commitError) Unwrap() error { return e.cause }

func isCode(err error, codes ...uint16) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && slices.Contains(codes, me.Number)
}

// isDuplicate reports a violated unique key.
func isDuplicate(err error) bool { return isCode(err, codeDuplicate) }

// isHoldingFull reports the CHECK of holdings: more live units than the limit.
func isHoldingFull(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && strings.Contains(me.Message, "holdings_units")
}

// isData reports a value that the schema refuses, which no retry will change.
func isData(err error) bool {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return false
	}
	if me.Number == codeUnknown { // the embedded engine tells them apart by words only
		return strings.Contains(me.Message, "Check constraint") || strings.Contains(me.Message, "too large for column")
	}
	return slices.Contains(dataCodes, me.Number)
}

// isLost reports a connection that broke or could not be made. Before COMMIT
// was sent that is as good as a rollback.
func isLost(err error) bool {
	var ne net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &ne)
}

// isAgain reports whether the whole transaction should be tried again.
func isAgain(err error) bool {
	var ce *commitError
	if errors.As(err, &ce) || isEnded(err) {
		return false
	}
	return errors.Is(err, errRaced) || isCode(err, againCodes...) || isLost(err)
}

// isEnded reports that the caller or a time limit ended the call.
func isEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// blame marks our own trouble as seckill.ErrUnavailable, so that it is never
// taken for an answer. Other errors pass unchanged.
func blame(err error) error {
	var ce *commitError
	switch {
	case err == nil, errors.Is(err, seckill.ErrUnavailable):
		return err
	case errors.As(err, &ce), isEnded(err), isAgain(err), isCode(err, awayCodes...),
		errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("%w: %w", seckill.ErrUnavailable, err)
	}
	return err
}
