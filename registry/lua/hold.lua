#!lua
-- Adds to the channels or clients that a server holds, unless it was declared dead: the janitor may
-- have finished its cleanup already.
-- KEYS[1] s_ch_{server} or s_c_{server}
-- KEYS[2] s_dead_{server}
-- ARGV channels or clients, at most 256
-- returns 1, or 0 if the server was declared dead
-- cost O(names)
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SADD', KEYS[1], unpack(ARGV))
return 1
