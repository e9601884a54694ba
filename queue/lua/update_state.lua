#!lua
-- Applies one update to the state of each of many channels, and appends its entry with append.lua.
-- It does what apply.go and check.go of package state do. Either all updates have an idempotency
-- key, or none.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+9] mq_k_{channel}:<key>, omitted without an idempotency key
-- and the keys of the piece of another package, see StateScript
-- ARGV[7+i] MessagePack: the members of an update u, an array; its operations and conditions are
--           arrays, too. script_members.go names their members in order and says what they are,
--           and replaces u.writer, op.kind and so on by positions in this text
-- For all, in addition to append.lua:
-- ARGV[5] TTL of the idempotency keys, ms
-- ARGV[7] 1 if the callers wait for replicas, 2 if nothing is to be stored in a new channel, 3
--         for both
-- returns for each channel {header, entry, field, record, ...}; or an error. The header has,
--         separated by newlines: id of the last entry, 0 for none; id before it; duplicate 0 or 1;
--         the clock (Unix ms); when the next field ends, or the whole state, or 0; results of
--         additions, JSON or nothing, and after a tab the reply of another piece; reason of the
--         refusal, or nothing; its field; its parent or group; two numbers of its message; the
--         servers. A refusal shows the current fields: a record is empty for an absent field, and
--         has no value beyond 32 KiB of values. A duplicate has the value of the idempotency key
--         in place of the id
-- cost O(log n) for each field, O(log n) for each group, O(servers)

local find = string.find
local keys_per_channel = #KEYS / (#ARGV - 7)

local function check_conditions(conditions)
	local differ, groups = {}, false
	for i = 1, #conditions do
		local cond = conditions[i]
		local name, kind, id = cond.field, cond.kind, cond.id
		local f = get(name)
		local met = f
		if not kind then
			met = f and f.id == id
		elseif kind == 1 then
			met = not f
		elseif kind == 3 then
			met, groups = true, true
		end
		if not met then
			differ[#differ + 1] = name
		end
	end
	if #differ > 0 then
		local r = refuse('condition', differ[1])
		r[6] = differ
		return r
	end
	for i = 1, groups and #conditions or 0 do
		local cond = conditions[i]
		if cond.kind == 3 then
			local group, most = cond.field, cond.id or 0
			local n = rare().count_group(group)
			if n > most then
				return {'group', '', group, n, most, {}}
			end
		end
	end
end

-- Returns whether the client owns a field as an operation asks for, so that no owner changes. The
-- fields of a connected owner are not away.
local function is_owned(f, op)
	return c.client and f.grace == (op.grace or 0) and find(f.owners .. ' ', c.client, 1, true)
end

-- Returns whether a part stays a part, and the writer may write it. The store has it as a part, so
-- its parent is no part, and it has no parts itself. The update has no other operation, so the
-- parent does not change.
local function is_kept_part(f, op, writer)
	local parent = c.alone and (op.parent or f.parent) == f.parent and get(f.parent)
	return parent and not (op.held_parent and parent.holder ~= (op.holder or writer))
end

-- Plans one operation. A plan is {op, old, gone, value}. Tables are made with the members that they
-- will have where these are known: a table that grows is allocated again.
local function plan(op, writer)
	local name, kind = op.field, op.kind
	local f = get(name)
	if op.claim and f and f.holder ~= (op.holder or writer) then
		return refuse('claim', name)
	end
	local p = {op = op, old = f, gone = kind == 2, value = kind == 1 and op.value}
	c.plans[name] = p
	if kind == 3 then
		local n = not f and 0 or parse_number(value_of(f))
		if not n then
			return refuse('number', name)
		end
		local sum = n + (op.by or 0)
		if sum < (op.min or 0) or sum > (op.max or 0) then
			return refuse('bounds', name, '', n, op.by)
		end
		p.value = format('%d', sum)
		c.sums = c.sums or {}
		c.sums[#c.sums + 1] = '"' .. name .. '":' .. p.value
	elseif kind == 4 and not f then
		return refuse('absent', name)
	end
	if not f or p.gone or op.own and not (op.own == 1 and is_owned(f, op)) then
		c.complex = true
	elseif (op.parent or f.parent ~= '') and not is_kept_part(f, op, writer) then
		c.complex = true
	end
	if not f and not p.gone then
		c.added = c.added or {}
		c.added[#c.added + 1] = name
	end
	if p.value then
		c.size_after = c.size_after + #p.value - (f and f.size or 0)
	end
end

-- Plans the first operation, which adds to a counter, and puts the numbers into the others.
local function take_numbers(ops, take, writer)
	local op = ops[1]
	local refusal = plan(op, writer)
	if refusal then
		return refusal
	end
	local before, numbers, gsub = tonumber(c.plans[op.field].value) - take, {}, string.gsub
	for i = 1, take do
		numbers[i == 1 and '{n}' or '{n' .. i .. '}'] = format('%d', before + i)
	end
	for i = 2, #ops do
		op = ops[i]
		op.field, op.parent = gsub(op.field, '{n%d*}', numbers), op.parent and gsub(op.parent, '{n%d*}', numbers)
		op.value = op.group and op.group:sub(1, 1) == '#' and op.value and gsub(op.value, '{n%d*}', numbers) or op.value
	end
	if #ops > 8 then
		rare().load_names(ops)
	end
end

local function write_field(op, writer)
	local name, value = op.field, c.plans[op.field].value
	local f, created = c.fields[name], false
	if not f then
		f, created = {id = false, lease = 0, away = 0, grace = 0, holder = '', parent = '', owners = '', size = 0}, true
		c.fields[name] = f
		c.bytes, c.indexed = c.bytes + #name, true
	end
	local touched, entry = c.touched, c.entry
	if not touched[name] then
		touched[name] = true
		touched[#touched + 1] = name
	end
	if value then
		c.bytes = c.bytes + #value - f.size
		f.id, f.value, f.size = false, value, #value
		if op.kind == 1 or f.holder == '' then
			f.holder = op.holder or writer
		end
		if entry.set then
			entry.set[name] = value
		else
			entry.set = {[name] = value}
		end
	end
	if op.kind ~= 3 or created then
		f.lease = op.lease and c.from + op.lease or 0
	end
	local till = end_of(f)
	c.indexed = c.indexed or till ~= c.old_end[name]
	if till > 0 or op.kind == 4 then
		entry.till = entry.till or {}
		entry.till[name] = format('%d', till)
	end
	if op.parent and op.parent ~= f.parent then
		rare().set_parent(name, f, op.parent)
	end
end

-- Returns a value if it is a JSON string that state.IsAlias accepts.
local function alias_of(value)
	local text = value:match('^"(.*)"$') or ''
	if find(text, '\\', 1, true) then
		local ok, list = pcall(cjson.decode, '[' .. value .. ']')
		text = ok and list[1] or ''
	end
	if text ~= '' and #text <= 128 and not find(text, '^ ') and not find(text, '%c') and not find(text, '\194[\128-\159]') then
		return value
	end
end

-- Checks the update, and writes its fields. Returns the refusal.
local function apply(u)
	local ops, writer, client = u.ops, u.writer or '', u.client
	c.plans, c.size_after, c.alone, c.from = {}, c.bytes, #ops == 1, u.from or ms
	if #ops + (u.conditions and #u.conditions or 0) > 8 then
		rare().load_names(ops, u.conditions)
	end
	if client then
		local o, generation, server = c.owners[client], u.generation or 0, u.server or ''
		if o == nil then
			o = parse_owner(client, c.keep and call('HGET', c.clients, client))
		end
		if is_fenced(o, generation, server) then
			return {'fenced', '', '', 0, 0, {}}
		end
		if o and o.generation == generation and o.server == server then
			c.client = ' ' .. client .. ' ' -- connected: it is not fenced
		end
	end
	local refusal, first = u.conditions and check_conditions(u.conditions), 1
	if u.take and not refusal then
		refusal, first = take_numbers(ops, u.take, writer), 2
	end
	for i = first, #ops do
		refusal = refusal or plan(ops[i], writer)
	end
	local write_rest
	if c.complex and not refusal then
		local check
		check, write_rest = define_rules(u)
		refusal = check()
	end
	refusal = refusal or u.max_bytes and c.size_after > u.max_bytes and c.size_after > c.bytes and {'bytes', '', '', c.size_after, u.max_bytes, {}}
	if refusal then
		return refusal
	end
	c.entry.by, c.entry.exclude, c.entry.data, c.whole = u.client_json, u.exclude_json, u.data, true
	for i = 1, #ops do
		local op = ops[i]
		if op.kind ~= 2 then
			write_field(op, writer)
		end
	end
	if write_rest then
		write_rest()
	end
	if u.by_field then
		local f = get(u.by_field)
		c.entry.from, c.entry.by = u.client_json, f and alias_of(value_of(f)) or nil
	end
end

local function reply_refused(servers, refusal)
	local shown, size, names = {'', ''}, 0, refusal[6]
	for _, name in ipairs(#names > 1 and rare().sort(names) or names) do
		local f, record = c.fields[name], ''
		if f and f.record then
			record = f.record
			if size + f.size > 32768 then -- state.PageBytes, as in dropValues of package state
				record = string.sub(record, 1, f.at - 1)
			else
				size = size + f.size
			end
		end
		shown[#shown + 1], shown[#shown + 2] = name, record
	end
	local id, last, text, due = commit()
	shown[1] = format('%s\n%d\n0\n%d\n%d\n\n%s\n%s\n%s\n%d\n%d\n%s', id, last, ms, due, refusal[1], refusal[2], refusal[3],
		refusal[4], refusal[5], id ~= '0' and table.concat(call('SMEMBERS', servers), '\n') or '')
	shown[2] = text
	return shown
end

local function update(i)
	local k = (i - 1) * keys_per_channel
	local key, servers = keys_per_channel - own_keys == 9 and KEYS[k+9], KEYS[k+3]
	local first = key and call('GET', key)
	if first then
		if ARGV[7] == '1' or ARGV[7] == '3' then
			-- A WAIT covers only writes on its own connection.
			call('SET', key, first, 'KEEPTTL')
		end
		return {format('%s\n0\n1\n%d\n0\n\n\n\n\n0\n0\n%s', first, ms, table.concat(call('SMEMBERS', servers), '\n')), ''}
	end
	local u = {cmsgpack.unpack(ARGV[7+i])}
	begin(k)
	if ARGV[7] >= '2' and not c.meta[1] and call('ZCARD', KEYS[k+1]) == 0 then
		return {format('0\n0\n0\n%d\n0\n\nnew\n\n\n0\n0\n', ms), ''}
	end
	local changes, reply, write = true, nil, nil
	if extend then
		reply, write = extend(u, k + keys_per_channel - own_keys)
		changes = #u.ops > 0 or u.data
		u.client_json, u.by_field = changes and u.client_json, changes and u.by_field
		u.exclude_json = changes and u.exclude_json
	end
	local refusal = apply(u)
	if refusal then
		return reply_refused(servers, refusal)
	end
	local results = c.sums and '{' .. table.concat(c.sums, ',') .. '}' or ''
	if reply then
		results = results .. '\t' .. reply
	end
	local id, last, text, due = commit(changes and (u.keep and ms + u.keep or -1), changes)
	if key then
		call('SET', key, results == '' and id or id .. ' ' .. results, 'PX', ARGV[5])
	end
	if write then
		write()
	end
	return {format('%s\n%d\n0\n%d\n%d\n%s\n\n\n\n0\n0\n%s', id, last, ms, due, results,
		table.concat(call('SMEMBERS', servers), '\n')), text}
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 7 do
	local ok, reply = pcall(update, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
