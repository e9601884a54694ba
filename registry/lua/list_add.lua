#!lua flags=allow-oom
-- Adds a name to s_list or ch_list. It also runs in a full Redis: the janitor only visits listed
-- names.
-- KEYS[1] s_list or ch_list
-- ARGV[1] server or channel
-- returns the number of names added: 0 or 1
-- cost O(1)
return redis.call('SADD', KEYS[1], ARGV[1])
