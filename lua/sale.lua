-- sale.lua is put before every script of a sale: it reads the sale, checks
-- that its numbers add up, and moves units.
-- KEYS: 1 sale (hash), 2 stock (string), 3 buyers (hash: buyer -> "claim=units,..."),
--       4 claims (hash: claim -> "status|buyer|units|extra"), 5 log (stream).
-- Law of the numbers: opened = stock + held - debt, none of them below zero.
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function set_fence(s, fence)
  s.fence = fence
  redis.call('HSET', KEYS[1], 'fence', fence, 'fence_ms', string.format('%.0f', now_ms()))
end

-- A key may be absent only while nothing is in it, and must be of its kind.
local function key_sound(key, kind, filled)
  local is = redis.call('TYPE', key)['ok']
  return is == kind or (is == 'none' and not filled)
end

-- Returns nil if Redis does not hold the sale. A sale whose keys are lost or
-- whose numbers do not add up is fenced here, before anything is decided.
local function read_sale()
  local v = redis.pcall('HMGET', KEYS[1], 'epoch', 'fence', 'opened', 'held', 'reserved', 'debt', 'seq', 'closes_ms')
  if v['err'] or not v[1] then return nil end
  local s = {epoch = v[1], fence = v[2] or '', sound = true, stock_was = 0, held_was = v[4], reserved_was = v[5], seq_was = v[7]}
  for i, field in ipairs({'opened', 'held', 'reserved', 'debt', 'seq', 'closes_ms'}) do
    s[field] = tonumber(v[i + 2] or '')
    if not s[field] then s.sound, s[field] = false, 0 end
  end
  local stock = redis.pcall('GET', KEYS[2])
  if type(stock) == 'string' and string.match(stock, '^%d+$') and #stock < 16 then s.stock = tonumber(stock) end
  s.stock_was = s.stock
  s.sound = s.sound and s.stock ~= nil and s.opened == s.stock + s.held - s.debt and key_sound(KEYS[3], 'hash', s.held > 0)
    and key_sound(KEYS[4], 'hash', s.seq > 0) and key_sound(KEYS[5], 'stream', s.reserved > 0)
  if s.fence == '' and not s.sound then
    set_fence(s, 'drain')
    s.corrupt = true
  end
  return s
end

-- Keys outlive the sale by a day; a key made anew gets its end here.
local function keep(s)
  for i = 1, 5 do redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', s.closes_ms + 86400000)) end
end

-- Writes the numbers that changed.
local function write_sale(s)
  if s.stock ~= s.stock_was then redis.call('INCRBY', KEYS[2], string.format('%.0f', s.stock - s.stock_was)) end
  local f = string.format
  redis.call('HSET', KEYS[1], 'held', f('%.0f', s.held), 'reserved', f('%.0f', s.reserved),
    'debt', f('%.0f', s.debt), 'seq', f('%.0f', s.seq))
end

local function take(s, units)
  local got = math.min(s.stock, units)
  s.stock, s.debt, s.held = s.stock - got, s.debt + units - got, s.held + units
end

local function give_back(s, units)
  local paid = math.min(s.debt, units)
  s.stock, s.debt, s.held = s.stock + units - paid, s.debt - paid, s.held - units
end

local function add_held(held, claim, units_text)
  if held and held ~= '' then held = held .. ',' else held = '' end
  return held .. claim .. '=' .. units_text
end

local function drop_held(buyer, claim)
  local kept = {}
  for c, n in string.gmatch(redis.call('HGET', KEYS[3], buyer) or '', '([^=,]+)=(%d+)') do
    if c ~= claim then kept[#kept + 1] = c .. '=' .. n end
  end
  if #kept == 0 then redis.call('HDEL', KEYS[3], buyer) else redis.call('HSET', KEYS[3], buyer, table.concat(kept, ',')) end
end

-- A batch of claims to settle: their records as they are now, and what is to
-- be written at the end.
local function read_claims(ids)
  local b = {records = {}, fields = {}, ended = {}}
  for i, record in ipairs(redis.call('HMGET', KEYS[4], unpack(ids))) do b.records[ids[i]] = record end
  return b
end

local function write_claims(b)
  if #b.fields > 0 then redis.call('HSET', KEYS[4], unpack(b.fields)) end
  if #b.ended > 0 then redis.call('XDEL', KEYS[5], unpack(b.ended)) end
end

-- Settles one claim of a batch as ordered, rejected or released; returns the
-- word for it. While the sale is fenced only the claim's record changes: its
-- numbers are about to be built from MySQL.
local function settle_one(s, b, claim, buyer, units, want, extra)
  local record = b.records[claim]
  local was, owner, held, entry
  if record then was, owner, held, entry = string.match(record, '^(%a+)|([^|]*)|(%d+)|([^|]*)') end
  if was == want or was == 'released' or was == 'rejected' then return 'same' end
  local counting = s.fence == ''
  if was then buyer, units = owner, tonumber(held) end
  if not was and want == 'ordered' and counting then
    take(s, units)
    redis.call('HSET', KEYS[3], buyer, add_held(redis.call('HGET', KEYS[3], buyer), claim, string.format('%.0f', units)))
  end
  if was == 'reserved' then
    b.ended[#b.ended + 1] = entry
    if counting then s.reserved = s.reserved - units end
  end
  if was and want ~= 'ordered' and counting then
    give_back(s, units)
    drop_held(buyer, claim)
  end
  b.records[claim] = want .. '|' .. buyer .. '|' .. string.format('%.0f', units) .. '|' .. extra
  b.fields[#b.fields + 1], b.fields[#b.fields + 2] = claim, b.records[claim]
  return was and 'done' or 'adopted'
end
