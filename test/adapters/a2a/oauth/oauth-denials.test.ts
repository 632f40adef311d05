import test from 'brittle'
import fc from 'fast-check'
import {
  MAX_ACCESS_TOKEN_MS,
  MAX_OAUTH_DENIED,
  OAuthDenials
} from '../../../../src/adapters/a2a/oauth/oauth-denials.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

const CLIENTS = ['cli_a', 'cli_b', 'cli_c'] as const
const LIFE_MS = 3_600_000

interface Token {
  readonly clientId: string
  readonly jti: string
  readonly grantId: string | null
  readonly iat: number
  readonly endsAt: number
  isRevoked: boolean
}

type Act =
  | { readonly type: 'revoke'; readonly client: string; readonly count: number; readonly byGrant: boolean }
  | { readonly type: 'issue'; readonly client: string; readonly inGrant: boolean }
  | { readonly type: 'pass'; readonly ms: number }
  | { readonly type: 'restart' }

const client = fc.constantFrom(...CLIENTS)
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    type: fc.constant('revoke' as const),
    client: fc.constantFrom(CLIENTS[0], CLIENTS[0], CLIENTS[1]),
    count: fc.integer({ min: 1, max: 2 * MAX_OAUTH_DENIED }),
    byGrant: fc.boolean()
  }),
  fc.record({ type: fc.constant('issue' as const), client, inGrant: fc.boolean() }),
  fc.record({ type: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: LIFE_MS }) }),
  fc.constant({ type: 'restart' as const })
)

/** Denials, and what is true of them. */
class Model {
  readonly clock = new ManualClock()
  denials = new OAuthDenials(this.clock)
  readonly tokens: Token[] = []
  /** When a client revoked something. */
  readonly revocations: { readonly clientId: string; readonly at: number }[] = []

  issue(clientId: string, inGrant: boolean): Token {
    const [now, number] = [this.clock.now(), this.tokens.length]
    const grantId = inGrant ? `g${number}` : null
    const times = { iat: Math.floor(now / 1000), endsAt: now + LIFE_MS }
    const token = { clientId, jti: `j${number}`, grantId, ...times, isRevoked: false }
    this.tokens.push(token)
    return token
  }

  revoke(token: Token): void {
    token.isRevoked = true
    this.revocations.push({ clientId: token.clientId, at: this.clock.now() })
    if (token.grantId === null) this.denials.token(token, token.endsAt)
    else this.denials.grant({ clientId: token.clientId, grantId: token.grantId })
  }

  apply(one: Act): void {
    if (one.type === 'issue') this.issue(one.client, one.inGrant)
    else if (one.type === 'pass') this.clock.advance(one.ms)
    else if (one.type === 'revoke') for (let i = 0; i < one.count; i++) this.revoke(this.issue(one.client, one.byGrant))
    else {
      const kept = JSON.parse(JSON.stringify(this.denials.entries())) as ReturnType<OAuthDenials['entries']>
      this.denials = new OAuthDenials(this.clock)
      this.denials.load(kept)
      this.denials.tidy()
    }
  }

  get isRight(): boolean {
    const now = this.clock.now()
    const recent = (clientId: string): number =>
      this.revocations.filter((one) => one.clientId === clientId && one.at > now - 2 * MAX_ACCESS_TOKEN_MS).length
    const isEach = this.tokens
      .filter(({ endsAt }) => endsAt > now)
      .every((one) =>
        one.isRevoked ? this.denials.has(one) : !this.denials.has(one) || recent(one.clientId) > MAX_OAUTH_DENIED
      )
    return isEach && this.denials.entries().length <= CLIENTS.length * MAX_OAUTH_DENIED
  }
}

test('a revoked token stays revoked until it expires, the list is bounded, and a client with many revocations harms no other', async (t) => {
  await holds(
    t,
    fc.property(fc.array(act, { maxLength: 12 }), (acts) => {
      const model = new Model()
      return acts.every((one) => (model.apply(one), model.isRight))
    })
  )
})

test('beyond the bound of a client all tokens that it got so far are refused, and the next ones are good', (t) => {
  const model = new Model()
  const [kept, other] = [model.issue('cli_a', false), model.issue('cli_b', true)]
  model.apply({ type: 'revoke', client: 'cli_a', count: MAX_OAUTH_DENIED, byGrant: false })
  t.absent(model.denials.has(kept), 'up to the bound each alone')
  model.apply({ type: 'revoke', client: 'cli_a', count: 1, byGrant: true })
  t.ok(model.denials.has(kept))
  t.absent(model.denials.has(other))
  t.ok(model.denials.has(model.issue('cli_a', false)), 'in the same second the order is unknown')
  model.clock.advance(1000)
  const fresh = model.issue('cli_a', false)
  t.absent(model.denials.has(fresh))
  model.clock.advance(MAX_ACCESS_TOKEN_MS)
  model.denials.tidy()
  t.alike(model.denials.entries(), [], 'once all has expired nothing is kept')
})

test('revocations of a client are forgotten with the client', (t) => {
  const model = new Model()
  model.revoke(model.issue('cli_a', true))
  model.revoke(model.issue('cli_b', true))
  model.denials.forget('cli_a')
  t.alike(
    model.denials.entries().map(([clientId]) => clientId),
    ['cli_b']
  )
})
