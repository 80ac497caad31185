-- amend.lua brings a changed sale into Redis without touching what is held.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: 1 version, 2 opened, 3 closes_ms, then field and value of each other field.
-- Reply: "amended" | "same" (this version or a newer one is there) | "fenced".
local s = read_sale()
if not s or s.fence ~= '' then return 'fenced' end
if tonumber(redis.call('HGET', KEYS[1], 'version') or '0') >= tonumber(ARGV[1]) then return 'same' end
-- Units taken away beyond the stock become debt: the next returns pay it.
local change = tonumber(ARGV[2]) - s.opened
if change >= 0 then
  s.held = s.held + change
  give_back(s, change)
else
  take(s, -change)
  s.held = s.held + change
end
s.closes_ms = tonumber(ARGV[3])
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'opened', ARGV[2], 'closes_ms', ARGV[3], unpack(ARGV, 4))
write_sale(s)
keep(s)
return 'amended'
