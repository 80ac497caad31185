package mysqld

import (
	"fmt"
	"io"
	"sync"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/variables"
	"github.com/sirupsen/logrus"
)

// prepare sets up, once, what the engines of a process share. Their log says
// every connection and statement error; errors reach the client anyway.
var prepare = sync.OnceFunc(func() {
	logrus.SetOutput(io.Discard)
	variables.InitStatusVariables()
	sql.StatusVariables = &statusVariables{shared: sql.StatusVariables}
})

// statusVariables puts a lock around the engines' status variables: each new
// engine resets them for all, which the library does without one.
type statusVariables struct {
	mu     sync.Mutex
	shared sql.StatusVariableRegistry
}

// NewSessionMap implements sql.StatusVariableRegistry.
func (v *statusVariables) NewSessionMap() map[string]sql.StatusVarValue {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.shared.NewSessionMap()
}

// NewGlobalMap implements sql.StatusVariableRegistry.
func (v *statusVariables) NewGlobalMap() map[string]sql.StatusVarValue {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.shared.NewGlobalMap()
}

// GetGlobal implements sql.StatusVariableRegistry.
func (v *statusVariables) GetGlobal(name string) (sql.StatusVariable, any, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.shared.GetGlobal(name)
}

// SetGlobal implements sql.StatusVariableRegistry.
func (v *statusVariables) SetGlobal(name string, value any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.shared.SetGlobal(name, value); err != nil {
		return fmt.Errorf("set the status variable %s: %w", name, err)
	}
	return nil
}

// IncrementGlobal implements sql.StatusVariableRegistry.
func (v *statusVariables) IncrementGlobal(name string, by int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shared.IncrementGlobal(name, by)
}
