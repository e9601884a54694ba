// Connects many clients of client/js to the URLs of its first argument, which is JSON, and prints a
// line for each connection and each end. SDK is the module with the client. It ends with its input.
import WebSocket from "ws";

const { Switchboard } = await import(process.env.SDK ?? "../../../client/js/dist/index.js");
const { urls, clients } = JSON.parse(process.argv[2]);
const report = (i, up) => console.log(JSON.stringify({ i, up, at: Date.now() }));
const all = Array.from({ length: clients }, (_, i) => {
  const sb = new Switchboard(urls, { WebSocket, user: `u${i}`, client: "sdk" });
  sb.on("connected", () => report(i, true));
  sb.on("disconnected", () => sb.phase !== "connected" && report(i, false));
  return sb;
});
process.stdin.resume().on("end", async () => {
  await Promise.all(all.map((sb) => sb.close()));
  process.exit(0);
});
