// Follows a stream with the npm package eventsource. The arguments are the client and the URL.
// Every event is one JSON line on stdout.
import { EventSource } from "eventsource";
import { follow } from "./stream.js";

const [client, url] = process.argv.slice(2);
follow(EventSource, client, url, (e) => process.stdout.write(JSON.stringify(e) + "\n"));
