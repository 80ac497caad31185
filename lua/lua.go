// Package lua embeds the scripts that decide in Redis, one file each, with
// the contract of a script (keys, arguments, every reply) above its code.
package lua

import _ "embed"

//go:embed sale.lua
var sale string

//go:embed open.lua
var open string

//go:embed load.lua
var load string

//go:embed lift.lua
var lift string

//go:embed amend.lua
var amend string

//go:embed fence.lua
var fence string

//go:embed note.lua
var note string

//go:embed head.lua
var head string

//go:embed claim.lua
var claim string

//go:embed settle.lua
var settle string

//go:embed restock.lua
var restock string

//go:embed bind.lua
var bind string

//go:embed cacheitem.lua
var cacheItem string

// Script is the source of one script, ready to be sent.
type Script string

// The scripts of a sale share sale.lua; the last two stand alone.
var (
	Open      = Script(sale + open)
	Load      = Script(sale + load)
	Lift      = Script(sale + lift)
	Amend     = Script(sale + amend)
	Fence     = Script(sale + fence)
	Note      = Script(sale + note)
	Head      = Script(sale + head)
	Claim     = Script(sale + claim)
	Settle    = Script(sale + settle)
	Restock   = Script(sale + restock)
	Bind      = Script(bind)
	CacheItem = Script(cacheItem)
)
