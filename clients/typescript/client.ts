/**
 * A typed client for pages of the same site.
 *
 * `schema.d.ts` is made from the running service's description:
 *
 *   curl -s --output openapi.json http://127.0.0.1:8000/api/v1/openapi.json
 *   npm ci && npm run generate && npm run check
 */
import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./schema";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);
const REFRESHED = "gatehouse-refreshed";
const IS_TOKEN_REFUSED = /^auth\.token_(missing|expired|invalid)$/;
// Where the flow is over and not the session, or where it is refreshed or ended anyway.
const IS_LEFT_ALONE = /\/((setup|register|login)\/finish|auth\/(refresh|logout))$/;

/** Whose session the page is in; 0 while it does not say so. */
let userId = 0;

/** What every unsafe request of a page says: the readable cookie again, and for whom it is meant. */
function asChange(request: Request): Request {
  if (SAFE.has(request.method)) return request;
  const cookie = document.cookie.split("; ").find((one) => one.startsWith("service_csrf="));
  if (cookie) request.headers.set("X-CSRF-Token", cookie.slice("service_csrf=".length));
  if (userId) request.headers.set("X-Session-User", String(userId));
  return request;
}

async function codeOf(answer: Response): Promise<string> {
  const { code } = await answer.clone().json().catch(() => ({})); // a proxy's own answer
  return code ?? "";
}

let running: Promise<unknown> = Promise.resolve();

/** Does one thing at a time: over all tabs on https and localhost, where browsers have locks. */
function alone<T>(work: () => Promise<T>): Promise<T> {
  if (navigator.locks) return navigator.locks.request(REFRESHED, work) as Promise<T>;
  const next = running.catch(() => undefined).then(work);
  running = next;
  return next;
}

/** Returns undefined when there is a session to go on with, else the refusal. */
function renew(baseUrl: string): Promise<Response | undefined> {
  return alone(async () => {
    const last = Number(localStorage.getItem(REFRESHED) ?? 0);
    if (Math.abs(Date.now() - last) < 5000) return undefined; // another tab has just done it
    const url = `${baseUrl}/api/v1/auth/refresh`;
    const answer = await fetch(
      asChange(new Request(url, { method: "POST", credentials: "same-origin" })),
    );
    if (!answer.ok && (await codeOf(answer)) !== "auth.refresh_token_stale") return answer;
    localStorage.setItem(REFRESHED, String(Date.now()));
    return undefined;
  });
}

/** Refreshes when the access token is refused, and repeats the request once. */
function refreshing(baseUrl: string): Middleware {
  const copies = new Map<string, Request>();
  return {
    onRequest({ id, request }) {
      copies.set(id, request.clone());
    },
    onError({ id }) {
      copies.delete(id);
    },
    async onResponse({ id, response, schemaPath }) {
      const copy = copies.get(id);
      copies.delete(id);
      if (!copy || response.status !== 401 || IS_LEFT_ALONE.test(schemaPath)) return undefined;
      if (!IS_TOKEN_REFUSED.test(await codeOf(response))) return undefined;
      const refusal = await renew(baseUrl);
      if (!refusal) return fetch(asChange(copy));
      // Whether the session is over, nobody knows: that is what the caller is told, then.
      return [401, 403].includes(refusal.status) ? undefined : refusal;
    },
  };
}

/**
 * A client whose calls have the CSRF token, and refresh the access token when it is refused.
 *
 * `refresh` is for what does not pass through it, pictures and streams: call it a little before
 * `expires_in` is over. It tells whether there is a session to go on with, and throws when that
 * cannot be found out. `meanFor` says whose session the page is in, by the id of GET /auth/me: all
 * pages of a browser share its cookies, and once they are another account's, changes are refused with
 * 403 `auth.session_user_mismatch`. `logOut` also removes the cookies of a session that has ended elsewhere.
 */
export function gatehouse(baseUrl = "") {
  const client = createClient<paths>({ baseUrl, credentials: "same-origin" });
  client.use({ onRequest: ({ request }) => asChange(request) }, refreshing(baseUrl));
  return Object.assign(client, {
    meanFor(id: number) {
      userId = id;
    },
    async refresh(): Promise<boolean> {
      const refusal = await renew(baseUrl);
      if (refusal && ![401, 403].includes(refusal.status)) throw new Error(refusal.statusText);
      return !refusal;
    },
    logOut() {
      return alone(() => {
        localStorage.removeItem(REFRESHED);
        return client.POST("/api/v1/auth/logout");
      });
    },
  });
}
