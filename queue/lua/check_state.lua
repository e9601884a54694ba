#!lua flags=no-writes
-- Reads all records of the state of a channel at one moment, to compare them.
-- KEYS[1] mq_m_{channel}
-- KEYS[2] st_{channel}
-- KEYS[3] st_n_{channel}
-- KEYS[4] st_x_{channel}
-- KEYS[5] st_p_{channel}
-- KEYS[6] st_o_{channel}
-- returns TTL of mq_m in ms, st_keep, st_bytes, st_due ('' if absent), and the contents of the
--         other keys: fields and records, names and scores, fields and ends, parts and scores,
--         clients and records
-- cost O(size of the state)

local call = redis.call
local meta = call('HMGET', KEYS[1], 'st_keep', 'st_bytes', 'st_due')
return {
	call('PTTL', KEYS[1]), meta[1] or '', meta[2] or '', meta[3] or '', call('HGETALL', KEYS[2]),
	call('ZRANGE', KEYS[3], '0', '-1', 'WITHSCORES'), call('ZRANGE', KEYS[4], '0', '-1', 'WITHSCORES'),
	call('ZRANGE', KEYS[5], '0', '-1', 'WITHSCORES'), call('HGETALL', KEYS[6]),
}
