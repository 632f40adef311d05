import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { agentSubject, type CardSubject, nodeSubject } from '../../../../src/adapters/a2a/cards/card-subject.js'
import { toCardV03, toHybridCard } from '../../../../src/adapters/a2a/cards/card-v03.js'
import { toCardV1 } from '../../../../src/adapters/a2a/cards/card-v1.js'
import {
  CARD_MAX_FINDINGS,
  CARD_MAX_VALUES,
  type CardFinding,
  checkCard
} from '../../../../src/adapters/a2a/remote/card-check.js'
import { MAX_REMOTE_SKILLS } from '../../../../src/adapters/a2a/remote/card-schema.js'
import { readRemoteCard } from '../../../../src/adapters/a2a/remote/remote-card.js'
import { cardWith, oldCardWith } from '../../../support/a2a/foreign-cards.js'
import { arbToldAgent, BASE, type ToldAgent } from '../../../support/a2a-cards.js'
import { holds } from '../../../support/holds.js'

const HOST = { base: BASE, pushNotifications: false }

/** As a client reads it. */
function received(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

function faultsOf(card: unknown): readonly CardFinding[] {
  return checkCard(card).findings.filter(({ isWarning }) => !isWarning)
}

function linesOf(card: unknown, isWarning = false): string[] {
  return checkCard(card)
    .findings.filter((one) => one.isWarning === isWarning)
    .map(({ path, wrong, right }) => `${path} ${wrong}; ${right}`)
}

function isValidInAll(subject: CardSubject): boolean {
  const found = [toCardV1(subject), toCardV03(subject), toHybridCard(subject)].map((card) => checkCard(received(card)))
  const versions = found.map((one) => one.versions.join())
  // A node does offer agents without a capability.
  const isKnown = (path: string): boolean => path === '/skills' && subject.skills.length === 0
  const faults = found.flatMap((one) => one.findings).filter(({ isWarning, path }) => !isWarning && !isKnown(path))
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  return versions.join(' ') === '1.0 0.3 1.0,0.3'
}

function subjectOf({ detail, original }: ToldAgent): CardSubject {
  return agentSubject(detail, original, HOST)
}

test('any agent has a card that is valid in 1.0, in 0.3 and as both at once', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbToldAgent(), (told) => isValidInAll(subjectOf(told))),
    300
  )
})

test('any set of agents makes a valid card of their node, in which no two skills have one id', async (t: Assert) => {
  const arbAgents = fc.uniqueArray(arbToldAgent(), { selector: ({ detail }) => detail.address, maxLength: 8 })
  await holds(
    t,
    fc.property(arbAgents, (told) => {
      const details = told.map(({ detail }) => detail)
      const node = { id: 'y'.repeat(52), name: 'a', tier: 'L0' as const }
      const subject = nodeSubject({ node }, details, { ...HOST, version: '1.0.0' })
      return (
        isValidInAll(subject) &&
        subject.skills.length === details.reduce((sum, { capabilities }) => sum + capabilities.length, 0)
      )
    }),
    150
  )
})

test('all faults of a card of 1.0 are found at once, each with its path, the found value and the expected one', (t: Assert) => {
  const card = cardWith({
    name: undefined,
    version: 7,
    provider: { organization: '', url: 'example.org' },
    supportedInterfaces: [
      { url: 'ftp://a.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: 'box:50051', protocolBinding: 'GRPC', protocolVersion: 'latest' },
      { url: 'https://u:p@a.example', protocolBinding: 'HTTP+JSON' },
      { url: 'https://a.example', protocolBinding: 'SOAP', protocolVersion: '1.0' }
    ],
    capabilities: { streaming: 'yes' },
    securitySchemes: { one: { httpAuthSecurityScheme: { scheme: 'Bearer' }, mtlsSecurityScheme: {} }, 'a/b': {} },
    securityRequirements: [{ schemes: { other: { list: [] } } }],
    skills: [
      { id: 's', name: 'S', description: 'd', tags: [], securityRequirements: [{ schemes: { third: {} } }] },
      { id: 's', name: '', description: 'd' },
      { id: 'x'.repeat(257), name: 'x'.repeat(3000), description: 'd', tags: {} }
    ]
  })
  const kinds =
    'must have one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, openIdConnectSecurityScheme, mtlsSecurityScheme'
  t.alike(linesOf(card), [
    '/capabilities/streaming is "yes"; must be true or false',
    '/name is missing; must be a text',
    '/provider/organization is empty; must not be empty',
    '/provider/url is "example.org"; must be an absolute http or https URL, without user and password',
    '/securityRequirements/0/schemes/other is no scheme of the card; must be a name in /securitySchemes',
    `/securitySchemes/a~1b has none of its kinds; ${kinds}`,
    `/securitySchemes/one has httpAuthSecurityScheme and mtlsSecurityScheme; ${kinds}`,
    '/skills/0/securityRequirements/0/schemes/third is no scheme of the card; must be a name in /securitySchemes',
    '/skills/1/id is "s", the id of /skills/0 too; must be an id that no other skill has',
    '/skills/1/name is empty; must not be empty',
    '/skills/1/tags is missing; must be a list',
    '/skills/2/id has 257 characters; must be at most 256 characters long',
    '/skills/2/name has 3000 characters; must be at most 2048 characters long',
    '/skills/2/tags is an object; must be a list',
    '/supportedInterfaces/0/url is "ftp://a.example"; must be an absolute http or https URL, without user and password',
    '/supportedInterfaces/1/protocolVersion is "latest"; must be a version such as 1.0',
    '/supportedInterfaces/2/protocolVersion is missing; must be a text',
    '/supportedInterfaces/2/url is "https://u:p@a.example"; must be an absolute http or https URL, without user and password',
    '/supportedInterfaces/3/protocolBinding is "SOAP"; must be JSONRPC, HTTP+JSON, GRPC or the URI of another binding',
    '/version is 7; must be a text'
  ])
})

test('all faults of a card of 0.3 are found at once', (t: Assert) => {
  const card = oldCardWith({
    url: 'ftp://a.example',
    protocolVersion: undefined,
    additionalInterfaces: [
      { url: 'file:///x', transport: 'HTTP+JSON' },
      { url: 'box:1', transport: 'GRPC' },
      { url: 'https://a.example' }
    ],
    securitySchemes: { key: { type: 'apiKey', in: 'body', name: 'k' }, what: { type: 'magic' }, who: 7 },
    security: [{ none: [] }],
    defaultInputModes: 'text/plain',
    skills: []
  })
  t.alike(checkCard(card).versions, ['0.3'])
  t.alike(linesOf(card), [
    '/additionalInterfaces/0/url is "file:///x"; must be an absolute http or https URL, without user and password',
    '/additionalInterfaces/2/transport is missing; must be a text',
    '/defaultInputModes is "text/plain"; must be a list',
    '/protocolVersion is missing; must be a text',
    '/security/0/none is no scheme of the card; must be a name in /securitySchemes',
    '/securitySchemes/key/in is "body"; must be one of query, header, cookie',
    '/securitySchemes/what/type is "magic"; must be one of apiKey, http, oauth2, openIdConnect, mutualTLS',
    '/securitySchemes/who is 7; must be an object',
    '/skills is an empty list; must list at least one skill',
    '/url is "ftp://a.example"; must be an absolute http or https URL, without user and password'
  ])
})

test('right cards of others have no findings, with members that nobody here knows', (t: Assert) => {
  const flows = { clientCredentials: { tokenUrl: 'https://a.example/token', scopes: { read: 'to read' } } }
  const custom = { url: 'x:1', protocolBinding: 'urn:example:binding', protocolVersion: '1.0' }
  const common = { url: 'https://a.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }
  const good = [
    cardWith({ x: 1 }),
    cardWith({
      provider: { organization: 'Example', url: 'https://a.example' },
      supportedInterfaces: [custom, common]
    }),
    cardWith({
      securitySchemes: {
        oauth: { oauth2SecurityScheme: { flows } },
        key: { apiKeySecurityScheme: { location: 'header', name: 'x' } }
      },
      securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }, { schemes: { key: {} } }]
    }),
    oldCardWith({
      securitySchemes: { o: { type: 'oauth2', flows }, m: { type: 'mutualTLS' } },
      security: [{ o: ['read'], m: [] }]
    })
  ]
  for (const card of good) t.alike(checkCard(card).findings, [])
  const grpc = oldCardWith({ preferredTransport: 'GRPC', url: 'box:50051' })
  t.alike(linesOf(grpc), [
    '/url has no address that this node can call; must have an address for A2A 1.0 or 0.3 over JSONRPC or HTTP+JSON'
  ])
  const later = cardWith({ supportedInterfaces: [{ ...common, protocolVersion: '2.0' }] })
  t.alike(
    faultsOf(later).map(({ path, stopsImport }) => [path, stopsImport]),
    [['/supportedInterfaces', true]]
  )
})

test('oddities that an import accepts are warnings', (t: Assert) => {
  const at = (url: string, protocolBinding = 'JSONRPC'): Record<string, unknown> =>
    cardWith({ supportedInterfaces: [{ url, protocolBinding, protocolVersion: '1.0' }] })
  const from = 'https://a.example/x/.well-known/agent-card.json'
  for (const [card, path, wrong] of [
    [at('http://0.0.0.0:9/a2a'), '/supportedInterfaces/0/url', 'read as "https://a.example/a2a"'],
    [at('https://[::]:9/'), '/supportedInterfaces/0/url', 'read as "https://a.example/"'],
    [at('/rpc'), '/supportedInterfaces/0/url', 'read as "https://a.example/rpc"'],
    [oldCardWith({ url: 'rpc' }), '/url', 'read as "https://a.example/x/rpc"'],
    [at('https://a.example', 'jsonrpc'), '/supportedInterfaces/0/protocolBinding', 'read as JSONRPC'],
    [oldCardWith({ preferredTransport: 'http+json' }), '/preferredTransport', 'read as HTTP+JSON'],
    [cardWith({ description: 'x'.repeat(5000) }), '/description', 'has 5000 characters'],
    [cardWith({ provider: null, iconUrl: null }), '', 'null for absent members: /provider, /iconUrl']
  ] as const) {
    const { findings } = checkCard(card, from)
    t.alike(
      findings.map((one) => [one.path, one.isWarning, one.stopsImport]),
      [[path, true, false]]
    )
    t.ok(findings[0]?.wrong.includes(wrong), findings[0]?.wrong)
    t.ok(readRemoteCard(card).ok)
  }
  t.alike(linesOf(at('rpc with spaces')).length, 1, 'no text becomes a path')
  t.is(faultsOf(cardWith({ name: null }))[0]?.wrong, 'is missing', 'null is absent, so a needed member is missing')
})

test('an import refuses a card if and only if a fault says so, and names the first and the number of others', async (t: Assert) => {
  const junk = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(
      undefined,
      null,
      '',
      'x'.repeat(300),
      [],
      {},
      7,
      ['a', 7],
      [{}],
      [{ id: 's' }, { id: 's' }]
    )
  )
  const keys = [
    'name',
    'description',
    'version',
    'skills',
    'capabilities',
    'supportedInterfaces',
    'url',
    'protocolVersion',
    'provider'
  ]
  const changes = fc.dictionary(fc.constantFrom(...keys), junk, { maxKeys: 4, noNullPrototype: true })
  const seen = { taken: 0, refused: 0, faultyTaken: 0 }
  await holds(
    t,
    fc.property(changes, fc.boolean(), (changed, isOld) => {
      const card = isOld ? oldCardWith(changed) : cardWith(changed)
      const { findings } = checkCard(card)
      const faults = findings.filter(({ isWarning }) => !isWarning)
      const isStopped = faults.some(({ stopsImport }) => stopsImport)
      const read = readRemoteCard(card)
      seen[read.ok ? 'taken' : 'refused']++
      if (read.ok && faults.length > 0) seen.faultyTaken++
      if (read.ok)
        return (
          !isStopped &&
          read.card.interfaces.length > 0 &&
          new Set(read.card.skills.map(({ id }) => id)).size === read.card.skills.length
        )
      return (
        isStopped &&
        (!read.isCard || read.more === faults.length - 1) &&
        faults.some(({ path }) => path === '' || read.reason.startsWith(path))
      )
    }),
    1000
  )
  t.ok(
    Object.values(seen).every((count) => count > 50),
    JSON.stringify(seen)
  )
})

test('no number of other findings hides a fault that stops an import', (t: Assert) => {
  const many = Array.from({ length: 400 }, (_, at) => ({ id: `s${at}`, name: '', description: 'd' }))
  const card = cardWith({ skills: [...many, { id: 's1', name: 'twice', description: 'd', tags: [] }] })
  const { findings } = checkCard(card)
  t.is(findings.length, CARD_MAX_FINDINGS)
  t.alike(
    findings.filter(({ stopsImport }) => stopsImport).map(({ path }) => path),
    ['/skills/400/id']
  )
  t.absent(readRemoteCard(card).ok)
  t.absent(
    readRemoteCard(cardWith({ skills: Array.from({ length: MAX_REMOTE_SKILLS + 1 }, (_, at) => ({ id: `s${at}` })) }))
      .ok
  )
})

test('a card of both versions must be right in both, and only the version that is read stops an import', (t: Assert) => {
  const both = { ...oldCardWith({}), ...cardWith({}), preferredTransport: 7, security: [{ none: [] }] }
  t.alike(checkCard(both).versions, ['1.0', '0.3'])
  t.alike(
    faultsOf(both).map(({ path, stopsImport }) => [path, stopsImport]),
    [
      ['/preferredTransport', false],
      ['/security/0/none', false]
    ]
  )
  t.is(faultsOf({ ...both, name: 7 }).filter(({ path }) => path === '/name').length, 1, 'a fault of both counts once')
  t.ok(readRemoteCard(both).ok)
})

test('no value makes the check throw, and no report is long', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.anything(), fc.anything(), (junk, part) => {
      const cards = [
        junk,
        cardWith({ skills: junk, securitySchemes: part }),
        oldCardWith({ additionalInterfaces: junk, security: [part] })
      ]
      return cards.every((card) => {
        const { findings } = checkCard(card)
        return (
          findings.length <= CARD_MAX_FINDINGS &&
          findings.every(({ path, wrong }) => path.length <= 256 && wrong.length <= 1000)
        )
      })
    }),
    500
  )
  const hidden = {
    ...cardWith({}),
    get name(): string {
      throw new Error('no')
    }
  }
  t.alike(linesOf(hidden), [' cannot be read; must be a JSON object'])
  const huge = linesOf(cardWith({ skills: Array.from({ length: CARD_MAX_VALUES }, () => 0) }))
  t.alike(huge, [` is not read: it has more than ${CARD_MAX_VALUES} values; must keep to the limits of JSON here`])
  for (const value of [JSON.parse('{"__proto__":{"name":"x"}}') as unknown, [], 'card', null, 7])
    t.is(faultsOf(value).length, 1)
})

/** A card with a list of many entries. */
function filled(head: object, key: string, entry: (at: number) => unknown, count: number): unknown {
  return { ...oldCardWith({}), ...head, [key]: Array.from({ length: count }, (_, at) => entry(at)) }
}

test('no card takes long to check, for any content of its lists', (t: Assert) => {
  const schemes = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`s${at}`, 1]))
  const most = CARD_MAX_VALUES - 1000
  const prefix = 'x'.repeat(2000)
  const cards: Readonly<Record<string, unknown>> = {
    'interfaces, all different': filled({}, 'additionalInterfaces', (at) => ({ url: prefix + String(at) }), most / 2),
    'interfaces, all the same': filled({}, 'additionalInterfaces', () => ({}), most),
    'requirements of 0.3': filled({ securitySchemes: schemes }, 'security', () => ({}), most),
    'requirements of 1.0': filled(
      { supportedInterfaces: [], securitySchemes: schemes },
      'securityRequirements',
      () => ({}),
      most
    ),
    'requirements of skills': filled({ securitySchemes: schemes }, 'skills', () => ({ security: [{}] }), most / 3),
    'undeclared schemes': filled({}, 'security', () => ({ a: 1, b: 1 }), most / 3),
    'skills of one id': filled({}, 'skills', () => ({ id: 'a' }), most / 2),
    'broken skills': filled({}, 'skills', () => ({}), most),
    'signatures of no form': filled({}, 'signatures', () => ({}), most)
  }
  for (const [what, card] of Object.entries(cards)) {
    const begun = performance.now()
    const { findings } = checkCard(card)
    const took = performance.now() - begun
    t.ok(findings.length > 0 && !findings.some(({ wrong }) => wrong.startsWith('is not read')), what)
    t.ok(took < 1000, `${what}: ${Math.round(took)} ms`)
  }
})

test('a version that is no text hides no fault', (t: Assert) => {
  for (const protocolVersion of [{ toString: 1 }, [{ toString: null }], 7, true])
    t.ok(faultsOf({ protocolVersion, version: '1' }).some(({ path }) => path === '/name'))
})
