package seckill

import "time"

// Item is what is sold: a SKU with its name, text and picture.
type Item struct {
	SKU         string
	Name        string
	Description string
	ImageURL    string
	// Version grows by one with each change; a reader never replaces a newer
	// version by an older one.
	Version   int64
	UpdatedAt time.Time
}

// Bounds of an item's texts, in bytes of UTF-8.
const (
	ItemNameMax        = 255
	ItemDescriptionMax = 60_000
	ItemImageURLMax    = 2048
)

// Validate returns a *FieldError for the first unacceptable field.
func (i Item) Validate() error {
	switch {
	case !ValidSlug(i.SKU):
		return fieldError("sku", "must be 1 to 64 of a-z, 0-9 and -")
	case i.Name == "" || len(i.Name) > ItemNameMax:
		return fieldError("name", "must have 1 to %d bytes", ItemNameMax)
	case len(i.Description) > ItemDescriptionMax:
		return fieldError("description", "must have at most %d bytes", ItemDescriptionMax)
	case len(i.ImageURL) > ItemImageURLMax:
		return fieldError("image_url", "must have at most %d bytes", ItemImageURLMax)
	}
	return nil
}
