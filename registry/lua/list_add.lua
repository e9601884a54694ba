#!lua flags=allow-oom
-- Puts a name into one of the two lists, in a full Redis too: out of its list nobody would look after it.
-- KEYS[1] s_list or ch_list
-- ARGV[1] server or channel
-- returns how many names were added: 0 or 1
-- cost O(1)
return redis.call('SADD', KEYS[1], ARGV[1])
