#!lua
-- Applies one update to the state of each of many channels, and appends its entry with append.lua.
-- It does what apply.go and check.go of package state do. Either all updates have an idempotency
-- key, or none.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+9] mq_k_{channel}:<key>, omitted without an idempotency key
-- ARGV[7+i] MessagePack: {operations, conditions, data, writer, client, generation, server, most
--           fields, most bytes, most fields of one owner, keep in ms, client as JSON}. An
--           operation is {field, kind, value, by, min, max, lease in ms, own, grace in ms, claim,
--           parent, held parent, group limit}, a condition is {field, kind, id}; see
--           appendUpdate in redis_state.go
-- For all, in addition to append.lua:
-- ARGV[5] TTL of the idempotency keys, ms
-- ARGV[7] 1 if the callers wait for replicas, 2 if nothing is to be stored in a new channel
-- returns for each channel {header, entry, field, record, ...}; or an error. The header has,
--         separated by newlines: id of the last entry, 0 for none; id before it; duplicate 0 or 1;
--         the clock (Unix ms); when the next field ends, or the whole state, or 0; results of
--         additions, JSON or nothing; reason of the refusal, or nothing; its field; its parent or
--         group; two numbers of its message; the servers. A refusal shows the current fields: a
--         record is empty for an absent field, and has no value above 32 KiB of values. A
--         duplicate has the value of the idempotency key in place of the id
-- cost O(log n) for each field, O(log n) for each group, O(servers)

local keys_per_channel = #KEYS / (#ARGV - 7)
local max_number = 9007199254740991

local function define_update()
	local u, ops, client, writer -- the update
	local plans -- by field: {op, old, gone, value}
	local added -- fields that the update creates, in order
	local complex -- whether the update needs more than values and leases of existing fields

	local function refuse(reason, field, other, n, limit)
		return {reason, field, other or '', n or 0, limit or 0, {field}}
	end

	local function check_conditions()
		local differ = {}
		for _, c in ipairs(u[2]) do
			local f = get(c[1])
			local met = f
			if c[2] == 0 then
				met = f and f.id == c[3]
			elseif c[2] == 1 then
				met = not f
			end
			if not met then
				differ[#differ + 1] = c[1]
			end
		end
		if #differ > 0 then
			local r = refuse('condition', differ[1])
			r[6] = differ
			return r
		end
	end

	-- Parses a value that an addition can change.
	local function parse_number(value)
		if match(value, '^%-?%d+$') then
			local n = tonumber(value)
			if n >= -max_number and n <= max_number and format('%d', n) == value then
				return n
			end
		end
	end

	local function plan(op)
		local name, kind = op[1], op[2]
		local f = get(name)
		if op[10] == 1 and f and f.holder ~= writer then
			return refuse('claim', name)
		end
		local p = {op = op, old = f}
		plans[name] = p
		if kind == 1 then
			p.value = op[3]
		elseif kind == 2 then
			p.gone = true
		elseif kind == 3 then
			local n = not f and 0 or parse_number(f.value)
			if not n then
				return refuse('number', name)
			end
			if n + op[4] < op[5] or n + op[4] > op[6] then
				return refuse('bounds', name, '', n)
			end
			p.value = format('%d', n + op[4])
		elseif not f then
			return refuse('absent', name)
		end
		complex = complex or not f or p.gone or op[8] > 0 or op[11] ~= '' or f.parent ~= ''
		if not f and not p.gone then
			added[#added + 1] = name
		end
	end

	local function refuse_size(after)
		if u[9] > 0 and after > u[9] and after > bytes then
			return {'bytes', '', '', after, u[9], {}}
		end
	end

	local function write_field(op)
		local name, value = op[1], plans[op[1]].value
		local f, created = get(name), false
		if not f then
			f, created = {id = false, lease = 0, away = 0, grace = 0, holder = '', parent = '', owners = '', value = ''}, true
			fields[name] = f
			bytes = bytes + #name
		end
		touch(touched, name)
		if value then
			bytes = bytes + #value - #f.value
			f.id, f.value = false, value
			if op[2] == 1 or f.holder == '' then
				f.holder = writer
			end
			note('set', name, value)
		end
		if op[2] ~= 3 or created then
			f.lease = op[7] > 0 and ms + op[7] or 0
		end
		local till = end_of(f)
		if till > 0 or op[2] == 4 then
			note('till', name, format('%d', till))
		end
		if op[11] ~= '' then
			rare().set_parent(name, f, op[11])
		end
	end

	-- Checks the update, and writes its fields. Returns the refusal.
	local function apply()
		if client ~= '' and rare().is_fenced(rare().owner(client), u[6], u[7]) then
			return {'fenced', '', '', 0, 0, {}}
		end
		local refusal, after = check_conditions(), bytes
		for i = 1, refusal and 0 or #ops do
			refusal = refusal or plan(ops[i])
		end
		if refusal then
			return refusal
		end
		local check, write_rest
		if complex then
			check, write_rest = define_rules(u, plans, added, refuse, parse_number, refuse_size)
			refusal = check()
		else
			for name, p in pairs(plans) do
				after = after + (p.value and #p.value - #p.old.value or 0)
			end
			refusal = refuse_size(after)
		end
		if refusal then
			return refusal
		end
		entry.by, entry.data = client ~= '' and u[12], u[3] ~= '' and u[3]
		whole = true
		for i = 1, #ops do
			if ops[i][2] ~= 2 then
				write_field(ops[i])
			end
		end
		if write_rest then
			write_rest()
		end
	end

	-- Returns the results of additions as JSON, or ''.
	local function numbers()
		local list
		for i = 1, #ops do
			if ops[i][2] == 3 then
				list = list or {}
				list[#list + 1] = '"' .. ops[i][1] .. '":' .. plans[ops[i][1]].value
			end
		end
		return list and '{' .. concat(list, ',') .. '}' or ''
	end

	local function load_all()
		local list = {}
		for i = 1, #u[2] do
			list[i] = u[2][i][1]
		end
		for i = 1, #ops do
			list[#list + 1] = ops[i][1]
			if ops[i][11] ~= '' then
				list[#list + 1] = ops[i][11]
			end
		end
		load(list)
	end

	return function(i)
		local k = (i - 1) * keys_per_channel
		local key = keys_per_channel == 9 and KEYS[k+9]
		local first = key and call('GET', key)
		if first then
			if ARGV[7] == '1' then
				-- A WAIT covers only writes on its own connection.
				call('SET', key, first, 'KEEPTTL')
			end
			return {format('%s\n0\n1\n%d\n0\n\n\n\n\n0\n0\n%s', first, ms, concat(call('SMEMBERS', KEYS[k+3]), '\n')), ''}
		end
		u = cmsgpack.unpack(ARGV[7+i])
		ops, writer, client, plans, added, complex = u[1], u[4], u[5], {}, {}, false
		begin(k)
		local held = (ARGV[7] == '2' and not meta[1]) and call('ZCARD', KEYS[k+1])
		if held == 0 then
			return {format('0\n0\n0\n%d\n0\n\nnew\n\n\n0\n0\n', ms), ''}
		end
		load_all()
		local refusal = apply()
		if refusal then
			local shown = {'', ''}
			local list, size = refusal[6], 0
			if #list > 1 then
				table.sort(list)
			end
			for _, name in ipairs(list) do
				local f = fields[name]
				local record = f and f.record or ''
				if f and size + #f.value > 32768 then -- see dropValues in refusal.go
					record = match(record, '^[^\n]*\n')
				elseif f then
					size = size + #f.value
				end
				shown[#shown + 1] = name
				shown[#shown + 1] = record
			end
			local id, last, text, next_due = commit()
			local servers = id ~= '0' and call('SMEMBERS', KEYS[k+3]) or {}
			shown[1] = format('%s\n%d\n0\n%d\n%d\n\n%s\n%s\n%s\n%d\n%d\n%s', id, last, ms, next_due,
				refusal[1], refusal[2], refusal[3], refusal[4], refusal[5], concat(servers, '\n'))
			shown[2] = text
			return shown
		end
		local results = numbers()
		local id, last, text, next_due = commit(u[11] > 0 and ms + u[11] or -1, true)
		if key then
			call('SET', key, results == '' and id or id .. ' ' .. results, 'PX', ARGV[5])
		end
		return {format('%s\n%d\n0\n%d\n%d\n%s\n\n\n\n0\n0\n%s', id, last, ms, next_due, results,
			concat(call('SMEMBERS', KEYS[k+3]), '\n')), text}
	end
end

-- An error of one channel does not affect the others.
local update, replies = define_update(), {}
for i = 1, #ARGV - 7 do
	local ok, reply = pcall(update, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
