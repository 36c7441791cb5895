// A certified OpenID provider on a port of its own; prints its issuer once it listens.
// Whoever signs in as NAME is NAME@example.test, verified unless the name begins with "unverified",
// and without an address if it begins with "silent".
// As by default, only user info tells so.

import { createServer } from "node:http";
import Provider from "oidc-provider";

const clients = JSON.parse(process.env.CLIENTS);

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients,
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "preferred_username"],
    },
    pkce: { required: () => true },
    cookies: { keys: ["loopback-only"] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id,
        ...(!id.startsWith("silent") && {
          email: `${id}@example.test`,
          email_verified: !id.startsWith("unverified"),
        }),
        name: `${id[0].toUpperCase()}${id.slice(1)} Example`,
        preferred_username: id,
      }),
    }),
  });
  // Tests have sites of many names; the path is what they share.
  provider.Client.prototype.redirectUriAllowed = (uri) =>
    new URL(uri).pathname.startsWith("/api/v1/auth/external-auth/");
  server.on("request", provider.callback());
  process.stdout.write(`${issuer}\n`);
});
