-- A piece of other scripts: revoked returns whether a token was revoked. user is u_r_{user}, client
-- is u_r_{user}:<client>, and issued is when the token was issued, Unix ms; 0 if it is not known. A
-- malformed time revokes nothing.
-- returns a function
-- cost O(1)
local function revoked(user, client, issued)
  local times = redis.call('MGET', user, client)
  return math.max(tonumber(times[1] or 0) or 0, tonumber(times[2] or 0) or 0) > tonumber(issued)
end

