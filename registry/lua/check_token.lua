#!lua flags=no-writes
-- Checks whether the tokens of clients were revoked.
-- For each client:
-- KEYS[k+1] u_r_{user}
-- KEYS[k+2] u_r_{user}:<client>
-- ARGV[a+1] when the token was issued, Unix ms; 0 if it is not known
-- returns for each client 1 if the token was revoked, else 0
-- cost O(1) for each
local replies = {}
local function check(k, a)
  return revoked(KEYS[k+1], KEYS[k+2], ARGV[a+1]) and 1 or 0
end
for i = 1, #KEYS / 2 do replies[i] = check(2 * i - 2, i - 1) end
return replies
