-- settle.lua tells a batch of claims of one sale what became of them: it ends
-- their log entries, and gives the units of refused ones back.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: for each claim: id, buyer, units, "ordered" | "rejected" | "released",
--   extra (pay_by in ms for ordered, the reason for rejected, else empty), epoch of the claim.
-- Reply: for each claim "done" (changed now) | "same" (was so before) |
--   "adopted" (Redis had lost the claim, now it knows it) | "gone" (Redis does not hold
--   the sale; if it is built again, then with this claim) | "fenced" (ask again later).
local s, reply, ids = read_sale(), {}, {}
for i = 1, #ARGV / 6 do
  ids[i], reply[i] = ARGV[6 * i - 5], s and 'fenced' or 'gone'
end
if not s or s.fence == 'rebuild' then return reply end
local b = read_claims(ids)
for i, id in ipairs(ids) do
  local a = 6 * i - 5
  -- A claim of this epoch that is not known shows that Redis lost data.
  if s.fence == '' and ARGV[a + 5] == s.epoch and not b.records[id] then set_fence(s, 'drain') end
  reply[i] = settle_one(s, b, id, ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3], ARGV[a + 4])
end
write_claims(b)
if s.stock then
  write_sale(s)
  if s.held_was == '0' then keep(s) end
end
return reply
