import test, { type Assert } from 'brittle'
import { a2aAgentsSchema, MAX_A2A_AGENTS, shownAgents } from '../../src/config/a2a-agents.js'

const CARD = 'https://far.example.com/.well-known/agent-card.json'
const faultOf = (agents: unknown): string => {
  const parsed = a2aAgentsSchema.safeParse(agents)
  return parsed.success
    ? ''
    : parsed.error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; ')
}

test('a remote agent of the config has a card, its other settings, and defaults for the rest', (t: Assert) => {
  const parsed = a2aAgentsSchema.parse({ far: { card: CARD, auth: { bearer: 'env:TOKEN' }, timeout: '5m' } })
  const { far } = parsed
  t.alike(
    [far?.timeoutMs, far?.sideEffect, far?.skills, far?.pin, far?.maxOutputBytes],
    [300_000, 'exec', null, null, 10_485_760]
  )
  t.alike(far?.auth, { header: 'authorization', value: 'env:TOKEN', isBearer: true, origins: [] })
  const key = a2aAgentsSchema.parse({
    far: { card: CARD, auth: { header: 'X-API-Key', value: 'env:KEY', origins: ['https://api.example.com'] } }
  })
  t.alike(key['far']?.auth, {
    header: 'X-API-Key',
    value: 'env:KEY',
    isBearer: false,
    origins: ['https://api.example.com']
  })
})

test('an invalid setting is refused at its line, and a secret is never written down', (t: Assert) => {
  t.ok(/auth/.test(faultOf({ far: { card: CARD, auth: { bearer: 'abc123' } } })))
  t.ok(/auth/.test(faultOf({ far: { card: CARD, auth: { header: 'X-Key', value: 'abc' } } })))
  t.ok(
    /auth/.test(faultOf({ far: { card: CARD, auth: { bearer: 'env:T', origins: ['https://a.example.com/path'] } } }))
  )
  t.ok(/far.card: must be an http/.test(faultOf({ far: { card: 'file:///etc/passwd' } })))
  t.ok(/far.card: must be a2a-mesh/.test(faultOf({ far: { card: 'a2a-mesh://node/elsewhere' } })))
  t.is(faultOf({ far: { card: 'a2a-mesh://laptop/agents/text' } }), '')
  t.ok(/password/.test(faultOf({ far: { card: 'https://u:p@far.example.com/' } })))
  t.ok(/far.card/.test(faultOf({ far: {} })))
  t.ok(/far.key: must be the public key/.test(faultOf({ far: { card: CARD, key: { kty: 'OKP', d: 'private' } } })))
  t.ok(/far.pin/.test(faultOf({ far: { card: CARD, pin: 'x' } })))
  t.ok(/operator/.test(faultOf({ operator: { card: CARD } })) || faultOf({ operator: { card: CARD } }) !== '')
  const many = Object.fromEntries(Array.from({ length: MAX_A2A_AGENTS + 1 }, (_, i) => [`a${i}`, { card: CARD }]))
  t.ok(/more than 32 agents/.test(faultOf(many)))
})

test('the query of a card is not shown: it may be a secret', (t: Assert) => {
  const parsed = a2aAgentsSchema.parse({ far: { card: `${CARD}?key=s3cret` } })
  t.absent(JSON.stringify(shownAgents(parsed)).includes('s3cret'))
})
