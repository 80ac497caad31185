package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"seckill/shared/config"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/strictjson"
)

// documentMax bounds a document in bytes.
const documentMax = 1 << 20

func openMySQL() (*mysqlstore.Store, error) {
	var c mysqlstore.Config
	if err := config.Load(&c); err != nil {
		return nil, err
	}
	return mysqlstore.Open(c)
}

func openRedis() (*redisstore.Store, error) {
	var c redisstore.Config
	if err := config.Load(&c); err != nil {
		return nil, err
	}
	return redisstore.Open(c)
}

func openNATS() (*natsqueue.Queue, error) {
	var c natsqueue.Config
	if err := config.Load(&c); err != nil {
		return nil, err
	}
	return natsqueue.Open(c)
}

// stores are all three, for commands that change a sale.
type stores struct {
	mysql *mysqlstore.Store
	redis *redisstore.Store
	queue *natsqueue.Queue
}

func openStores() (s stores, err error) {
	if s.mysql, err = openMySQL(); err != nil {
		return s, err
	}
	if s.redis, err = openRedis(); err != nil {
		return s, err
	}
	s.queue, err = openNATS()
	return s, err
}

func (s stores) close() {
	if s.queue != nil {
		_ = s.queue.Close()
	}
	if s.redis != nil {
		_ = s.redis.Close()
	}
	if s.mysql != nil {
		_ = s.mysql.Close()
	}
}

// readDocument decodes the JSON document in a file, strictly.
func readDocument(cmd *cobra.Command, path string, dst any) error {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // only read
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, documentMax+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > documentMax {
		return fmt.Errorf("read %s: more than %d bytes", path, documentMax)
	}
	if err := strictjson.Unmarshal(data, dst); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// write prints a document.
func write(cmd *cobra.Command, document any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(document)
}
