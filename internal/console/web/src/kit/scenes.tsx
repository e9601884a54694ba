import { useState } from "preact/hooks";
import { get, path, query } from "../api";
import { count, json } from "../format";
import { useDelayed, useLoad } from "../hooks";
import { At, Badge, Card, Empty, Facts, Loading, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import { Online } from "../pages/user";
import type { Scene, SceneCard } from "./types";

const storageName = "switchboard-world";

/** Scenes lists the scenes of all worlds, or of one. */
export function Scenes() {
  const [world, setWorld] = useState(sessionStorage.getItem(storageName) ?? "");
  const asked = useDelayed(world.trim(), 400);
  const { data, error } = useLoad(
    async (signal) => {
      sessionStorage.setItem(storageName, asked);
      return get<{ scenes: SceneCard[]; cursor?: string }>("/v1/scenes" + query({ world: asked, limit: 100 }), {
        signal,
      });
    },
    [asked],
    5000,
  );
  return (
    <Page title="Scenes" about="Where the avatars of your players are.">
      <form class="toolbar" role="search" onSubmit={(e) => e.preventDefault()}>
        <input
          type="search"
          aria-label="World"
          placeholder="All worlds"
          value={world}
          onInput={(e) => setWorld(e.currentTarget.value)}
        />
      </form>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && (
        <Card flush>
          {data.scenes.length === 0 && (
            <Empty title={asked ? "This world has no scene." : "There is no scene."}>
              Your backend makes scenes with <code>POST /v1/scenes</code>.
            </Empty>
          )}
          {data.scenes.length > 0 && (
            <Table caption="Scenes" columns={["Scene", "World", "Status", "+Avatars", "Time?"]}>
              {data.scenes.map((s) => (
                <tr key={s.id}>
                  <th scope="row">
                    <a class="name" href={link("scenes", s.id)}>
                      {s.name}
                    </a>
                    <span class="under mono">{s.id}</span>
                  </th>
                  <td class="mono">{s.world}</td>
                  <td>
                    <Badge tone={s.status === "open" ? "good" : "plain"}>{s.status}</Badge>
                  </td>
                  <td class="num">{count(s.count)}</td>
                  <td class="wide">{s.time ?? "–"}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.cursor && <p class="card-foot">The first {count(data.scenes.length)}</p>}
        </Card>
      )}
    </Page>
  );
}

export function ScenePage({ id }: { id: string }) {
  const { data, error, reload } = useLoad(
    (signal) => get<Scene>(path("scenes", id), { signal, exact: true }),
    [id],
    3000,
  );
  return (
    <Page
      title={data?.name ?? id}
      trail={{ label: "Scenes", href: link("scenes") }}
      actions={
        <a class="button" href={link("channels", `scene:${id}`)}>
          Channel scene:{id}
        </a>
      }
    >
      <Problem error={error} retry={reload} />
      {!data && !error && <Loading />}
      {data && (
        <>
          <Facts
            items={[
              ["World", data.world],
              ["Status", data.status],
              ["Time", data.time ?? "–"],
              ["Avatars", `${data.count}, ${data.online} online`],
              ["Created", <At ms={data.created} />],
            ]}
          />
          <Card title="Avatars" flush>
            {data.avatars.length === 0 && <Empty title="No avatar is here." />}
            {data.avatars.length > 0 && (
              <Table caption="Avatars" columns={["Avatar", "Figure?", "State", "Fields?"]}>
                {data.avatars.map((a) => (
                  <tr key={a.avatar}>
                    <th scope="row">
                      {a.name}
                      <span class="under mono">{a.avatar}</span>
                    </th>
                    <td class="wide">{a.figure ?? "–"}</td>
                    <td>
                      <Online online={a.online} />
                    </td>
                    <td class="wide mono value">{a.fields ? json(a.fields) : "–"}</td>
                  </tr>
                ))}
              </Table>
            )}
          </Card>
        </>
      )}
    </Page>
  );
}
