import { useMemo, useState } from "preact/hooks";
import { get, query } from "../api";
import { count, plural } from "../format";
import { useDelayed, useLoad } from "../hooks";
import { Card, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { go, link } from "../router";
import type { ChannelRow } from "../types";

const pageSize = 1000;
const maxPages = 5; // that are loaded to search in; with more channels the broker searches
const rowsAtOnce = 100;

interface Listed {
  rows: ChannelRow[];
  more: boolean; // there are channels that are not in rows
  partial: boolean; // a server did not answer
}

/** loadChannels reads up to maxPages pages of the channels with a prefix. */
async function loadChannels(prefix: string, signal: AbortSignal): Promise<Listed> {
  const listed: Listed = { rows: [], more: false, partial: false };
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const answer = await get<{ channels: ChannelRow[]; cursor?: string; partial?: boolean }>(
      "/v1/channels" + query({ prefix, cursor, limit: pageSize }),
      { signal },
    );
    // Without subscribers, a channel is listed because a call waits for its messages.
    listed.rows.push(...answer.channels.filter((c) => c.subscribers > 0 || answer.partial));
    listed.partial ||= answer.partial ?? false;
    cursor = answer.cursor;
    if (!cursor) return listed;
  }
  listed.more = true;
  return listed;
}

/** Channels lists the channels that have subscribers. */
export function Channels() {
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState<"name" | "subscribers">("subscribers");
  const [shown, setShown] = useState(rowsAtOnce);
  const [tooMany, setTooMany] = useState(false);
  // Only if not all channels are loaded, the broker searches, by prefix. Otherwise the search needs
  // no call.
  const prefix = useDelayed(tooMany ? search.trim() : "");
  const { data, error, reload } = useLoad(
    async (signal) => {
      const listed = await loadChannels(prefix, signal);
      if (prefix === "") setTooMany(listed.more);
      return listed;
    },
    [prefix],
    5000,
  );
  const found = useMemo(() => {
    const text = search.trim();
    const rows = (data?.rows ?? []).filter((r) => r.channel.includes(text));
    const byName = (a: ChannelRow, b: ChannelRow) => (a.channel < b.channel ? -1 : 1);
    return rows.sort(order === "name" ? byName : (a, b) => b.subscribers - a.subscribers || byName(a, b));
  }, [data, search, order]);
  const open = (event: Event) => {
    event.preventDefault();
    if (search.trim()) go("channels", search.trim());
  };
  const total = data && `${plural(data.rows.length, "channel")}${data.more ? " or more" : ""} with subscribers`;
  return (
    <Page title="Channels" about={total}>
      <Problem error={error} retry={reload} />
      <form class="toolbar" role="search" onSubmit={open}>
        <input
          type="search"
          aria-label="Search channels"
          placeholder={tooMany ? "Beginning of a name" : "Part of a name"}
          value={search}
          onInput={(e) => {
            setSearch(e.currentTarget.value);
            setShown(rowsAtOnce);
          }}
        />
        <button type="submit" class="button" disabled={!search.trim()}>
          Open this name
        </button>
        <label class="inline">
          Order
          <select value={order} onChange={(e) => setOrder(e.currentTarget.value as typeof order)}>
            <option value="subscribers">most subscribers</option>
            <option value="name">name</option>
          </select>
        </label>
      </form>
      {!data && !error && <Loading />}
      {data?.partial && <p class="problem soft">An instance did not answer. The numbers are lower bounds.</p>}
      {data && (
        <Card flush>
          {found.length === 0 && <NoChannels search={search.trim()} />}
          {found.length > 0 && (
            <Table caption="Channels" columns={["Channel", "+Subscribers"]}>
              {found.slice(0, shown).map((row) => (
                <tr key={row.channel}>
                  <th scope="row">
                    <a class="name" href={link("channels", row.channel)}>
                      {row.channel}
                    </a>
                  </th>
                  <td class="num">{count(row.subscribers)}</td>
                </tr>
              ))}
            </Table>
          )}
          {found.length > shown && (
            <div class="card-foot">
              <span>
                {count(shown)} of {count(found.length)}
              </span>
              <button type="button" class="button" onClick={() => setShown(shown + 5 * rowsAtOnce)}>
                Show more
              </button>
            </div>
          )}
        </Card>
      )}
    </Page>
  );
}

function NoChannels({ search }: { search: string }) {
  if (search) {
    return (
      <Empty title="No channel with subscribers has this name.">
        A channel without subscribers may still hold messages. <a href={link("channels", search)}>Open {search}</a>
      </Empty>
    );
  }
  return (
    <Empty title="No channel has a subscriber.">
      A channel exists as soon as a client subscribes or your backend pushes to it.{" "}
      <a href={link("start")}>Make a first push</a>
    </Empty>
  );
}
