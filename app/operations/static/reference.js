// Swagger UI with this site's manners: the CSRF token, and light or dark as the system says.

import { announce, base, sourceHeaders } from "./api.js";
import { el } from "./base/dom.js";

// Drawing every operation keeps the page busy for seconds, so it waits until somebody comes near:
// by scrolling, or with the address of an operation.
export function showReferenceWhenNear(host) {
  followColourScheme();
  const observer = new IntersectionObserver((entries) => entries.some(isNear) && load(), {
    rootMargin: "50%",
  });
  function load() {
    observer.disconnect();
    document.head.append(el("script", { src: host.dataset.script, load: () => show(host) }));
  }
  if (window.location.hash.startsWith("#/")) load();
  else observer.observe(host);
}

function isNear(entry) {
  return entry.isIntersecting;
}

function show(host) {
  window.SwaggerUIBundle({
    domNode: host,
    url: new URL("openapi.json", base).href,
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "none", // of 150 lines and more, it draws those near the window alone
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    onComplete: () => host.querySelector("main")?.setAttribute("role", "group"),
    plugins: [ownAddresses, noEndlessAnswers],
    requestInterceptor(request) {
      if (new URL(request.url, base).origin === base.origin) {
        request.headers = { ...request.headers, ...sourceHeaders(request.method || "GET") };
      }
      return request;
    },
    responseInterceptor(response) {
      announce();
      return response;
    },
  });
}

// Swagger UI reads every address as one of its own, and writes #passkeys as #/passkeys, which names
// no panel any more.
function ownAddresses() {
  const parseDeepLinkHash = (parse) => (hash) => (hash.startsWith("#/") ? parse(hash) : () => {});
  return { statePlugins: { layout: { wrapActions: { parseDeepLinkHash } } } };
}

// Swagger UI waits for the end of an answer before it shows any of it, and a stream has none.
function noEndlessAnswers() {
  const allowTryItOutFor = (allows) => (state, path, method) =>
    !isStream(state, path, method) && allows(state, path, method);
  const withHint = (Parameters, { React, specSelectors }) => (props) => {
    const [path, method] = props.pathMethod;
    const parameters = React.createElement(Parameters, props);
    if (specSelectors.allowTryItOutFor(path, method)) return parameters;
    const panel = React.createElement("a", { href: "#live-events" }, "Live events");
    const hint = React.createElement("p", { className: "hint" }, "The answer never ends: listen to it under ", panel, ".");
    return React.createElement(React.Fragment, null, hint, parameters);
  };
  return {
    statePlugins: { spec: { wrapSelectors: { allowTryItOutFor } } },
    wrapComponents: { parameters: withHint },
  };
}

function isStream(state, path, method) {
  const answer = ["json", "paths", path, method, "responses", "200", "content", "text/event-stream"];
  return state.hasIn(answer);
}

// Swagger UI has its dark colours behind a class.
function followColourScheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", apply);
  apply();
}
