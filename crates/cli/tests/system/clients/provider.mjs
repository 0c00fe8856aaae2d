// A login provider: the certified `oidc-provider`, with keys that are new at each start.
//
//   node provider.mjs PATH-OF-THE-LIBRARY PORT RS256|ES256 PORT-OF-THE-SERVER
import { generateKeyPairSync } from 'node:crypto';

const [library, port, alg, server] = process.argv.slice(2);
const { default: Provider } = await import(library);

const kinds = { RS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }] };
const keys = Object.entries(kinds).map(([alg, kind]) => {
  const { privateKey } = generateKeyPairSync(...kind);
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig' };
});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys },
  clients: [{
    client_id: 'elastane',
    client_secret: 'a secret: with/more+than&letters',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback', `http://127.0.0.1:${server}/elastane/v1/login/code`],
    id_token_signed_response_alg: alg,
  }],
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'HS256'] },
  pkce: { required: () => true },
  scopes: ['openid', 'email', 'groups'],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: ['ml'] }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
