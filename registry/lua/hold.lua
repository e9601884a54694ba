#!lua
-- Notes what a server holds, unless it was declared dead: its cleaning may be over already.
-- KEYS[1] s_ch_{server} or s_c_{server}
-- KEYS[2] s_dead_{server}
-- ARGV channels or clients, 256 at most
-- returns 1, or 0 when the server was declared dead
-- cost O(names)
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SADD', KEYS[1], unpack(ARGV))
return 1
