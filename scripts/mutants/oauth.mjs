// Faults in the OAuth server and in what becomes of those who are revoked; see list.mjs.

const DENIALS =
  'a revoked token stays revoked until it expires, the list is bounded, and a client with many revocations harms no other'
const RATED = 'requests without proof of a client do not change its tokens or its rate'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const OAUTH_MUTANTS = [
  {
    name: 'a client that revokes more than there is room for gets what it revoked before back',
    file: 'src/adapters/a2a/oauth/oauth-denials.ts',
    find: 'own.set(ALL, Math.max(before, this.#clock.now() + MAX_ACCESS_TOKEN_MS))',
    put: 'own.delete(ALL)',
    test: 'adapters/a2a/oauth/oauth-denials',
    title: DENIALS
  },
  {
    name: 'what was revoked of a client has no bound',
    file: 'src/adapters/a2a/oauth/oauth-denials.ts',
    find: 'if (own.size >= MAX_OAUTH_DENIED && !own.has(what)) {',
    put: 'if (own.size >= 1e9 && !own.has(what)) {',
    test: 'adapters/a2a/oauth/oauth-denials',
    title: DENIALS
  },
  {
    name: 'tokens of a revoked grant are good',
    file: 'src/adapters/a2a/oauth/oauth-denials.ts',
    find: '(grantId !== null && isOut(`grant:${grantId}`))',
    put: '(grantId !== null && isOut(`jti:${grantId}`))',
    test: 'adapters/a2a/oauth/oauth-denials',
    title: DENIALS
  },
  {
    name: 'sign-ins of others go first',
    file: 'src/adapters/a2a/oauth/oauth-store.ts',
    find: 'toSorted((a, b) => b.length - a.length)',
    put: 'toSorted((a, b) => a.length - b.length)',
    test: 'adapters/a2a/oauth/oauth-store',
    title: 'the number of waiting sign-ins is bounded, and no client with a fair share loses one'
  },
  {
    name: 'a grant that expired is forgotten before its last tokens',
    file: 'src/adapters/a2a/oauth/oauth-store.ts',
    find: "(model === 'Grant' ? MAX_ACCESS_TOKEN_MS : 0)",
    put: "(model === 'Grant' ? 0 : 0)",
    test: 'adapters/a2a/oauth/oauth-store',
    title: 'a grant that expired still ends the access tokens that came of it last'
  },
  {
    name: 'who only knows the name of a client uses up its share',
    file: 'src/adapters/a2a/oauth/oauth-limit.ts',
    find: 'return tooMany(this.#signIns, id)',
    put: 'return tooMany(this.#clients, id)',
    test: 'adapters/a2a/oauth/oauth-limit',
    title: RATED
  },
  {
    name: 'what another client has opens the share of a client',
    file: 'src/adapters/a2a/oauth/oauth-limit.ts',
    find: 'shown.find(({ clientId }) => clientId === id)',
    put: 'shown.find(({ clientId }) => clientId !== null)',
    test: 'adapters/a2a/oauth/oauth-limit',
    title: 'a name alone has its own small share for each client, strangers one for all of them'
  },
  {
    name: 'a device may ask as often as it likes',
    file: 'src/adapters/a2a/oauth/oauth-limit.ts',
    find: "own?.model === 'DeviceCode' && ",
    put: "own?.model === 'Device' && ",
    test: 'adapters/a2a/oauth/oauth-limit',
    title: 'a device that polls too often gets slow_down, and no interval below the allowed one'
  },
  {
    name: 'a key of before is good until the next rotation',
    file: 'src/adapters/a2a/oauth/oauth-keys.ts',
    find: 'this.#clock.now() - retiredAt < RETIRED_MS',
    put: 'retiredAt > 0',
    test: 'adapters/a2a/oauth/oauth-keys',
    title: 'whenever keys are rotated, each is good while a token of it may be, and no longer; the newest signs'
  },
  {
    name: 'tokens for other gateways as well are taken',
    file: 'src/adapters/a2a/oauth/oauth-tokens.ts',
    find: "typeof aud !== 'string' || ",
    put: '',
    test: 'adapters/a2a/oauth/oauth-tokens',
    title: 'a token counts only with its type, issuer, audience, times, key and all its claims'
  },
  {
    name: 'a token that was revoked in its last seconds is good again',
    file: 'src/adapters/a2a/oauth/oauth-adapter.ts',
    find: 'denials.token(handle, handle.endsAt)',
    put: 'denials.token(handle, handle.endsAt - 5000)',
    test: 'adapters/a2a/oauth/oauth-tokens',
    title: 'a token that was revoked in its last seconds'
  },
  {
    name: 'a weaker token goes on with what a stronger one began',
    file: 'src/node/gateway/caller.ts',
    find: 'tier > by.maxTier || ',
    put: '',
    test: 'node/gateway/caller',
    title: 'a token goes on with a task exactly when it could have begun it with that power'
  },
  {
    name: 'webhooks outlive the client that wanted them',
    file: 'src/node/gateway/caller.ts',
    find: 'return !clients.has(id)',
    put: 'return clients.has(owner)',
    test: 'node/gateway/caller.owners',
    title:
      'after a revocation, of token, client or membership, its owner gets no notification, and its webhooks are removed'
  },
  {
    name: 'a webhook of somebody who is gone is still told what waits',
    file: 'src/node/gateway/push/delivery.ts',
    find: " || this.#deps.isGone(this.#deps.taskOf(task)?.owner ?? '')",
    put: '',
    test: 'node/gateway/caller.owners',
    title: 'a notification that waits for another try is not sent once its owner is gone'
  }
]
