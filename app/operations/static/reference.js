// Swagger UI over this service's own description, with the CSRF token that its cookies call for.

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

function csrfToken() {
  return document.cookie.match(/(?:^|; )service_csrf=([^;]*)/)?.[1];
}

function withCsrfToken(request) {
  const isOwn = new URL(request.url, document.baseURI).origin === window.location.origin;
  const token = csrfToken();
  if (isOwn && token && !SAFE_METHODS.has((request.method ?? "GET").toUpperCase())) {
    request.headers["X-CSRF-Token"] = token;
  }
  return request;
}

// It has its dark colours behind a class.
function followColourScheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", apply);
  apply();
}

followColourScheme();
window.SwaggerUIBundle({
  dom_id: "#swagger-ui",
  url: "openapi.json",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  docExpansion: "none", // drawing every operation keeps the page busy for seconds
  filter: true,
  requestInterceptor: withCsrfToken,
  tryItOutEnabled: true,
  validatorUrl: null, // would be another host
});
