// Swagger UI with this site's manners: the CSRF token, and light or dark as the system says.

import { announce, base, sourceHeaders } from "./api.js";

export function showReference(host) {
  followColourScheme();
  window.SwaggerUIBundle({
    domNode: host,
    url: new URL("openapi.json", base).href,
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
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

// Swagger UI has its dark colours behind a class.
function followColourScheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", apply);
  apply();
}
