import { useState } from "preact/hooks";
import { get, path, query } from "../api";
import { count, json, plural } from "../format";
import { useLoad } from "../hooks";
import { Ago, At, Badge, Card, Empty, type Fact, Facts, Loading, Page, Problem, Table, type Tone } from "../parts/ui";
import { go, link } from "../router";
import type { Room, RoomCard } from "./types";

const pageSize = 50;
const statuses = ["waiting", "playing", "finished"];
const tones = new Map<string, Tone>([
  ["waiting", "accent"],
  ["playing", "good"],
]);

/**
 * loadRooms reads pages until there are `most` rooms. A page may be empty and still have a next
 * one.
 */
async function loadRooms(
  status: string,
  most: number,
  signal: AbortSignal,
): Promise<{ rooms: RoomCard[]; more: boolean }> {
  const rooms: RoomCard[] = [];
  let cursor: string | undefined;
  do {
    const page: { rooms: RoomCard[]; cursor?: string } = await get(
      "/v1/rooms" + query({ status, order: "activity", desc: 1, limit: pageSize, cursor }),
      { signal },
    );
    rooms.push(...page.rooms);
    cursor = page.cursor;
  } while (cursor && rooms.length < most);
  return { rooms, more: !!cursor };
}

export function Rooms() {
  const [status, setStatus] = useState("");
  const [most, setMost] = useState(pageSize);
  const [search, setSearch] = useState("");
  const { data, error, reload } = useLoad((signal) => loadRooms(status, most, signal), [status, most], 3000);
  const text = search.trim().toLowerCase();
  const found = (data?.rooms ?? []).filter((r) =>
    `${r.id} ${r.room.name ?? ""} ${r.room.mode}`.toLowerCase().includes(text),
  );
  return (
    <Page title="Rooms" about="The rooms of the kit, the latest activity first.">
      <Problem error={error} retry={reload} />
      <form
        class="toolbar"
        role="search"
        onSubmit={(e) => {
          e.preventDefault();
          if (text) go("rooms", search.trim());
        }}
      >
        <input
          type="search"
          aria-label="Search rooms"
          placeholder="Id, name or mode"
          value={search}
          onInput={(e) => setSearch(e.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={!text}>
          Open this id
        </button>
        <label class="inline">
          Status
          <select value={status} onChange={(e) => setStatus(e.currentTarget.value)}>
            <option value="">any</option>
            {statuses.map((s) => (
              <option key={s} value={s}>
                {s}
              </option>
            ))}
          </select>
        </label>
      </form>
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {found.length === 0 && (
            <Empty title={text || status ? "No room fits." : "There is no room."}>
              {!text && !status && (
                <>
                  Clients make rooms with <code>room.create</code>, your backend with <code>POST /v1/rooms</code>.
                </>
              )}
            </Empty>
          )}
          {found.length > 0 && (
            <Table caption="Rooms" columns={["Room", "Status", "+Players", "Mode?", "Region?", "Last activity?"]}>
              {found.map((r) => (
                <tr key={r.id}>
                  <th scope="row">
                    <a class="name" href={link("rooms", r.id)}>
                      {r.room.name || r.id}
                    </a>
                    <span class="under">{r.id}</span>
                  </th>
                  <td>
                    <RoomStatus room={r.room} />
                  </td>
                  <td class="num">
                    {r.members}
                    {r.reserved !== undefined && ` + ${r.reserved}`} / {r.room.capacity}
                  </td>
                  <td class="wide">{r.room.mode}</td>
                  <td class="wide">{r.room.region || "–"}</td>
                  <td class="wide">{r.last_activity ? <Ago at={r.last_activity} /> : "–"}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.more && (
            <div class="card-foot">
              <span>The first {count(data.rooms.length)}</span>
              <button type="button" class="button" onClick={() => setMost(most * 4)}>
                Show more
              </button>
            </div>
          )}
        </Card>
      )}
    </Page>
  );
}

function RoomStatus({ room }: { room: Room["room"] }) {
  return (
    <>
      <Badge tone={tones.get(room.status) ?? "plain"}>{room.status}</Badge>
      {room.locked && (
        <>
          {" "}
          <Badge tone="warn">locked</Badge>
        </>
      )}
      {room.visibility === "private" && (
        <>
          {" "}
          <Badge>private</Badge>
        </>
      )}
    </>
  );
}

export function RoomPage({ id }: { id: string }) {
  const { data, error, reload } = useLoad(
    (signal) => get<Room>(path("rooms", id), { signal, exact: true }),
    [id],
    3000,
  );
  const trail = { label: "Rooms", href: link("rooms") };
  if (error?.status === 404)
    return (
      <Page title={id} trail={trail}>
        <Card>
          <Empty title="There is no such room.">It may have ended. Your backend receives the event room_ended.</Empty>
        </Card>
      </Page>
    );
  return (
    <Page
      title={data?.room.name || id}
      trail={trail}
      about={data && <RoomStatus room={data.room} />}
      actions={
        data && (
          <a class="button" href={link("channels", data.channel)}>
            Channel {data.channel}
          </a>
        )
      }
    >
      <Problem error={error} retry={reload} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Facts
            items={[
              ["Id", data.id],
              ["Mode", data.room.mode],
              ["Players", `${data.members.length} of ${data.room.capacity}`],
              ["Owner", data.owner_user ?? data.owner ?? "none"],
              ["Region", data.room.region || "–"],
              ["Created", <At ms={data.room.created} />],
              ...(data.room.started ? [["Started", <At ms={data.room.started} />] as Fact] : []),
              ...(data.code ? [["Code", data.code] as Fact] : []),
            ]}
          />
          <Card title="Members" note={plural(data.members.length, "place") + " taken"} flush>
            {data.members.length === 0 && <Empty title="The room is empty." />}
            {data.members.length > 0 && (
              <Table caption="Members" columns={["Number", "User", "Nickname?", "State", "Joined?"]}>
                {data.members.map((m) => (
                  <tr key={m.n}>
                    <td class="rank">{m.n}</td>
                    <th scope="row">
                      {m.user ? (
                        <a class="name" href={link("users", m.user)}>
                          {m.user}
                        </a>
                      ) : (
                        "–"
                      )}
                    </th>
                    <td class="wide">{m.nickname || "–"}</td>
                    <td>
                      {m.reserved ? (
                        <Badge tone="accent">reserved</Badge>
                      ) : m.away ? (
                        <Badge tone="warn">away</Badge>
                      ) : (
                        <Badge tone="good">here</Badge>
                      )}
                    </td>
                    <td class="wide">{m.joined ? <Ago at={m.joined} /> : "–"}</td>
                  </tr>
                ))}
              </Table>
            )}
          </Card>
          {data.room.data !== undefined && (
            <Card title="Data">
              <pre class="mono" tabIndex={0}>
                {json(data.room.data, 2)}
              </pre>
            </Card>
          )}
        </>
      )}
    </Page>
  );
}
