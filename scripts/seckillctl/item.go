package main

import (
	"github.com/spf13/cobra"

	"seckill/shared/seckill"
)

// itemDocument is what "item put" reads and prints.
type itemDocument struct {
	SKU         string `json:"sku"`
	Name        string `json:"name"`
	Description string `json:"description"`
	ImageURL    string `json:"image_url"`
}

func itemCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "item", Short: "Keep items"}
	cmd.AddCommand(&cobra.Command{
		Use:     "put FILE.json",
		Short:   "Make or change an item",
		Long:    "put makes an item or changes it.\n\nDocument: {\"sku\",\"name\",\"description\",\"image_url\"}",
		Example: `  echo '{"sku":"tea","name":"Tea","description":"","image_url":""}' | seckillctl item put -`,
		Args:    cobra.ExactArgs(1),
		RunE:    putItem,
	})
	return cmd
}

func putItem(cmd *cobra.Command, args []string) error {
	var d itemDocument
	if err := readDocument(cmd, args[0], &d); err != nil {
		return err
	}
	s, err := openStores()
	defer s.close()
	if err != nil {
		return err
	}
	item, err := s.mysql.PutItem(cmd.Context(), seckill.Item{SKU: d.SKU, Name: d.Name, Description: d.Description, ImageURL: d.ImageURL})
	if err != nil {
		return err
	}
	if err := s.forgetItem(cmd.Context(), item.SKU); err != nil {
		return err
	}
	if err := s.queue.Changed(cmd.Context(), seckill.EventItemChanged, item.SKU, item.Version); err != nil {
		return err
	}
	return write(cmd, itemDocument{SKU: item.SKU, Name: item.Name, Description: item.Description, ImageURL: item.ImageURL})
}
