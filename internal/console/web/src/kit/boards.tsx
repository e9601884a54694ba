import { useState } from "preact/hooks";
import { get, path, query } from "../api";
import { count, plural } from "../format";
import { useLoad } from "../hooks";
import { At, Card, Code, Empty, Loading, Page, Problem, Table } from "../parts/ui";
import { go, link } from "../router";
import type { BoardCard, BoardView } from "./types";

const pageSize = 50; // entries of a board
const listSize = 100; // boards of a page

async function loadBoards(most: number, signal: AbortSignal): Promise<{ boards: BoardCard[]; more: boolean }> {
  const boards: BoardCard[] = [];
  let cursor: string | undefined;
  do {
    const page: { boards: BoardCard[]; cursor?: string } = await get(
      "/v1/boards" + query({ limit: listSize, cursor }),
      {
        signal,
      },
    );
    boards.push(...page.boards);
    cursor = page.cursor;
  } while (cursor && boards.length < most);
  return { boards, more: !!cursor };
}

/** Boards lists the boards that have a player, and opens any board by its name. */
export function Boards() {
  const [name, setName] = useState("");
  const [most, setMost] = useState(listSize);
  const { data, error, reload } = useLoad((signal) => loadBoards(most, signal), [most], 3000);
  const open = (event: Event) => {
    event.preventDefault();
    if (name.trim()) go("boards", name.trim());
  };
  return (
    <Page title="Boards" about="Scores and ranks. A board is listed while it has a player.">
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
      <Problem error={error} retry={reload} />
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {data.boards.length === 0 && (
            <Empty title="No board has a player.">
              <p>A board exists as soon as a pattern of the settings matches its name. Submit a score:</p>
              <Code
                label="A score"
                text={`curl ${location.origin}/v1/boards/chess/scores \\\n  -d '{"player": "amy", "score": 1500}'`}
              />
            </Empty>
          )}
          {data.boards.length > 0 && (
            <Table caption="Boards" columns={["Board", "First?", "+Score?", "+Players", "Order?", "Season ends?"]}>
              {data.boards.map((b) => (
                <tr key={b.board}>
                  <th scope="row">
                    <a class="name" href={link("boards", b.board)}>
                      {b.board}
                    </a>
                  </th>
                  <td class="wide">
                    {b.first && (
                      <a class="name" href={link("users", b.first.player)}>
                        {b.first.player}
                      </a>
                    )}
                  </td>
                  <td class="num wide">{b.first && count(b.first.score)}</td>
                  <td class="num">{count(b.count)}</td>
                  <td class="wide">{b.order === "asc" ? "lowest first" : "highest first"}</td>
                  <td class="wide">{b.ends && <At ms={b.ends} />}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.more && (
            <div class="card-foot">
              <span>The first {count(data.boards.length)}</span>
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
