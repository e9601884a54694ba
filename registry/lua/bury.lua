#!lua flags=allow-oom
-- Records the death of a server for operators, once, and removes old records.
-- KEYS[1] s_died
-- ARGV[1] server
-- ARGV[2] how long a record stays, ms
-- ARGV[3] most records
-- returns the number of records added: 0 or 1
-- cost O(log N + records removed)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local added = call('ZADD', KEYS[1], 'NX', string.format('%d', ms), ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%d', ms - ARGV[2]))
call('ZREMRANGEBYRANK', KEYS[1], '0', -ARGV[3] - 1)
call('PEXPIRE', KEYS[1], ARGV[2])
return added
