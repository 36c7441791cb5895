/**
 * A typed client for pages of the same site.
 *
 * `schema.d.ts` is made from the running service's description:
 *
 *   curl --output openapi.json http://127.0.0.1:8000/api/v1/openapi.json
 *   npm ci && npm run generate && npm run check
 */
import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./schema";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

/** Repeats the readable cookie in the header, as every unsafe request of a page must. */
const csrf: Middleware = {
  onRequest({ request }) {
    const cookie = document.cookie.split("; ").find((one) => one.startsWith("service_csrf="));
    if (cookie && !SAFE.has(request.method)) {
      request.headers.set("X-CSRF-Token", cookie.slice("service_csrf=".length));
    }
    return request;
  },
};

export function gatehouse(baseUrl = "") {
  const client = createClient<paths>({ baseUrl, credentials: "same-origin" });
  client.use(csrf);
  return client;
}
