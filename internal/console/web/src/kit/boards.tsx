import { useState } from "preact/hooks";
import { get, path, query } from "../api";
import { count, plural } from "../format";
import { useLoad } from "../hooks";
import { At, Card, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { go, link } from "../router";
import type { ChannelRow } from "../types";
import type { BoardView } from "./types";

const pageSize = 50;

/**
 * Boards opens a board by name. A board is not listed anywhere, but those that clients follow have
 * a channel.
 */
export function Boards() {
  const [name, setName] = useState("");
  const { data, error } = useLoad(
    (signal) => get<{ channels: ChannelRow[] }>("/v1/channels" + query({ prefix: "board:", limit: 1000 }), { signal }),
    [],
    5000,
  );
  const open = (event: Event) => {
    event.preventDefault();
    if (name.trim()) go("boards", name.trim());
  };
  return (
    <Page
      title="Boards"
      about="Scores and ranks. A board exists as soon as a pattern of the settings matches its name."
    >
      <form class="toolbar" onSubmit={open}>
        <input
          type="search"
          aria-label="Name of a board"
          placeholder="Name of a board"
          value={name}
          onInput={(e) => setName(e.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={!name.trim()}>
          Open
        </button>
      </form>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && (
        <Card title="Boards that clients follow" flush>
          {data.channels.length === 0 && (
            <Empty title="No client follows a board.">
              Open one by its name. Boards without followers are not listed.
            </Empty>
          )}
          {data.channels.length > 0 && (
            <Table caption="Boards" columns={["Board", "+Subscribers"]}>
              {data.channels.map((c) => {
                const board = c.channel.slice("board:".length);
                return (
                  <tr key={board}>
                    <th scope="row">
                      <a class="name" href={link("boards", board)}>
                        {board}
                      </a>
                    </th>
                    <td class="num">{count(c.subscribers)}</td>
                  </tr>
                );
              })}
            </Table>
          )}
        </Card>
      )}
    </Page>
  );
}

export function BoardPage({ name }: { name: string }) {
  const [offset, setOffset] = useState(0);
  const [season, setSeason] = useState("");
  const { data, error } = useLoad(
    (signal) => get<BoardView>(path("boards", name) + query({ offset, limit: pageSize, season }), { signal }),
    [name, offset, season],
    2000,
  );
  return (
    <Page
      title={name}
      trail={{ label: "Boards", href: link("boards") }}
      about={
        data && (
          <>
            {plural(data.count, "player")}
            {data.season && <>, season {data.season}</>}
            {data.ends && (
              <>
                , ends <At ms={data.ends} />
              </>
            )}
          </>
        )
      }
      actions={
        <a class="button" href={link("channels", `board:${name}`)}>
          Channel board:{name}
        </a>
      }
    >
      <div class="toolbar">
        <label class="inline">
          Season
          <select
            value={season}
            onChange={(e) => {
              setSeason(e.currentTarget.value);
              setOffset(0);
            }}
          >
            <option value="">current</option>
            <option value="previous">previous</option>
          </select>
        </label>
      </div>
      {error?.status === 404 ? (
        <Card>
          <Empty title="There is no such board or season.">{error.message}</Empty>
        </Card>
      ) : (
        <Problem error={error} />
      )}
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {data.entries.length === 0 && (
            <Empty title="No player has a score.">
              Your backend submits scores with <code>POST /v1/boards/{name}/scores</code>.
            </Empty>
          )}
          {data.entries.length > 0 && (
            <Table caption="Ranks" columns={["Rank", "Player", "+Score"]}>
              {data.entries.map((e) => (
                <tr key={e.rank}>
                  <td class="rank">{count(e.rank)}</td>
                  <th scope="row">
                    <a class="name" href={link("users", e.player)}>
                      {e.player}
                    </a>
                  </th>
                  <td class="num">{count(e.score)}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.count > pageSize && (
            <div class="card-foot">
              <span>
                {count(offset + 1)} to {count(offset + data.entries.length)} of {count(data.count)}
              </span>
              <button type="button" class="button" disabled={offset === 0} onClick={() => setOffset(offset - pageSize)}>
                Better
              </button>
              <button
                type="button"
                class="button"
                disabled={offset + pageSize >= data.count}
                onClick={() => setOffset(offset + pageSize)}
              >
                Next
              </button>
            </div>
          )}
        </Card>
      )}
    </Page>
  );
}
