-- settle.lua tells a batch of claims of one sale what became of them: it ends
-- their log entries, and gives the units of refused ones back.
-- KEYS: 1-5 as in sale.lua.
-- ARGV: for each claim: id, buyer, units, "ordered" | "rejected" | "released",
--   extra (pay_by in ms for ordered, the reason for rejected, else empty), epoch of the claim.
-- Reply: for each claim "done" (changed now) | "same" (was so before) |
--   "adopted" (Redis had lost the claim, now it knows it) | "gone" (Redis does not hold
--   the sale; if it is built again, then with this claim) | "fenced" (ask again later).
local s, reply = read_sale(), {}
for i = 1, #ARGV / 6 do
  local a = 6 * (i - 1)
  if not s then
    reply[i] = 'gone'
  elseif s.fence == 'rebuild' then
    reply[i] = 'fenced'
  else
    -- A claim of this epoch that is not known shows that Redis lost data.
    if s.fence == '' and ARGV[a + 6] == s.epoch and redis.call('HEXISTS', KEYS[4], ARGV[a + 1]) == 0 then set_fence(s, 'drain') end
    reply[i] = settle_one(s, ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5])
  end
end
if s and s.fence ~= 'rebuild' and s.stock then
  write_sale(s)
  if s.held_was == '0' then keep(s) end
end
return reply
