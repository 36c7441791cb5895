// Live events: open the stream of storage changes and watch them arrive.

import { isSignedIn } from "../api.js";
import { stepsPanel } from "../steps.js";
import { Stopped } from "../unfinished.js";
import { loginStep } from "./login_step.js";

const COMMAND = ".venv/bin/flask events publish --any --kind file.created --file-id 41 --root";
const DATA = /^data: /gm;

let open = new AbortController();

const steps = [
  {
    ...loginStep,
    id: "events-login",
    title: "Sign in to listen",
    why: "A stream belongs to a session and ends with it, wherever the session is ended.",
    isSettled: isSignedIn,
  },
  {
    id: "events-stream",
    title: "Listen to storage changes",
    method: "GET",
    path: "/auth/events/storage",
    why: "One connection that stays open, as EventSource opens it. Each event is one line of JSON; a comment every 15 seconds shows that the stream is alive. “sync.required” means that events were missed and everything should be reloaded.",
    action: "Listen",
    perform: listen,
    stop: () => open.abort(),
    stopAction: "Stop listening",
    explain: () => "The service ended the stream: its session is over, or the service is stopping.",
  },
];

async function listen(call, trace) {
  let events = 0;
  open = new AbortController();
  const exchange = await trace.follow(call, open.signal, (text) => {
    events += (text.match(DATA) || []).length;
    trace.say(events ? `${counted(events)} so far.` : `Listening. Publish one in a terminal: ${COMMAND}`);
  });
  if (open.signal.aborted) throw new Stopped(`Stopped after ${counted(events)}.`);
  // A session that was ended elsewhere leaves its cookies here.
  if (exchange.answer.ok) await trace.send({ method: "GET", path: "auth/me" }, "Is there still a session?");
  return exchange;
}

function counted(events) {
  return `${events} ${events === 1 ? "event" : "events"}`;
}

export const liveEvents = {
  id: "live-events",
  title: "Live events",
  build: () =>
    stepsPanel({
      id: liveEvents.id,
      title: liveEvents.title,
      lead: "What an open page is told at once when files change, on whichever instance that happens (server-sent events).",
      steps,
    }),
};
