import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { agentSubject, type CardSubject, nodeSubject } from '../../../src/adapters/a2a/cards/card-subject.js'
import { toCardV03, toHybridCard } from '../../../src/adapters/a2a/cards/card-v03.js'
import { toCardV1 } from '../../../src/adapters/a2a/cards/card-v1.js'
import { CARD_MAX_ERRORS, CARD_MAX_VALUES, type CardError, validateCard } from './card-validator.js'
import { arbToldAgent, BASE, type ToldAgent } from '../a2a-cards.js'
import { holds } from '../holds.js'

const HOST = { base: BASE, pushNotifications: false }

/** As a client reads it. */
function received(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}

function isValidInAll(subject: CardSubject): boolean {
  const found = [
    validateCard(received(toCardV1(subject))),
    validateCard(received(toCardV03(subject))),
    validateCard(received(toHybridCard(subject)))
  ]
  const versions = found.map((one) => one.versions.join())
  const errors = found.flatMap((one) => one.errors)
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  return versions.join(' ') === '1.0 0.3 1.0,0.3'
}

function subjectOf({ detail, original }: ToldAgent): CardSubject {
  return agentSubject(detail, original, HOST)
}

/** A right card of 1.0, with changes. */
function cardWith(changes: Record<string, unknown>): Record<string, unknown> {
  const card: Record<string, unknown> = {
    name: 'x',
    description: '',
    version: '1',
    supportedInterfaces: [{ url: 'https://a.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'd', tags: [] }],
    ...changes
  }
  return Object.fromEntries(Object.entries(card).filter(([, value]) => value !== undefined))
}

function oldCardWith(changes: Record<string, unknown>): Record<string, unknown> {
  const old = { supportedInterfaces: undefined, protocolVersion: '0.3.0', url: 'https://a.example/rpc' }
  return cardWith({ ...old, ...changes })
}

function pathsOf(errors: readonly CardError[]): string[] {
  return errors.map(({ path }) => path).sort()
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
      return isValidInAll(subject) && subject.skills.length === details.reduce((sum, { capabilities }) => sum + capabilities.length, 0)
    }),
    150
  )
})

test('everything that is wrong with a card of 1.0 is told at once', (t: Assert) => {
  const { valid, errors } = validateCard(
    cardWith({
      name: undefined,
      version: 7,
      supportedInterfaces: [
        { url: 'nowhere', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: 'box:50051', protocolBinding: 'GRPC', protocolVersion: '1.0' },
        { url: 'https://u:p@a.example', protocolBinding: 'HTTP+JSON' }
      ],
      capabilities: { streaming: 'yes' },
      securitySchemes: { one: { httpAuthSecurityScheme: { scheme: 'Bearer' }, mtlsSecurityScheme: {} }, 'a/b': {} },
      securityRequirements: [{ schemes: { other: { list: [] } } }],
      skills: [
        { id: 's', name: 'S', description: 'd', tags: [] },
        { id: 's', name: '', description: 'd' }
      ]
    })
  )
  t.absent(valid)
  t.alike(pathsOf(errors), [
    '/capabilities/streaming',
    '/name',
    '/securityRequirements/0/schemes/other',
    '/securitySchemes/a~1b',
    '/securitySchemes/one',
    '/skills/1/id',
    '/skills/1/name',
    '/skills/1/tags',
    '/supportedInterfaces/0/url',
    '/supportedInterfaces/2/protocolVersion',
    '/supportedInterfaces/2/url',
    '/version'
  ])
  t.is(errors.find(({ path }) => path === '/name')?.message, 'is missing')
})

test('everything that is wrong with a card of 0.3 is told at once', (t: Assert) => {
  const { valid, errors, versions } = validateCard(
    oldCardWith({
      url: 'ftp://a.example',
      additionalInterfaces: [{ url: 'x', transport: 'HTTP+JSON' }, { url: 'box:1', transport: 'GRPC' }, { url: 'https://a.example' }],
      securitySchemes: { key: { type: 'apiKey', in: 'body', name: 'k' }, what: { type: 'magic' } },
      security: [{ none: [] }],
      defaultInputModes: 'text/plain',
      skills: undefined
    })
  )
  t.absent(valid)
  t.alike(versions, ['0.3'])
  t.alike(pathsOf(errors), [
    '/additionalInterfaces/0/url',
    '/additionalInterfaces/2/transport',
    '/defaultInputModes',
    '/security/0/none',
    '/securitySchemes/key/in',
    '/securitySchemes/what/type',
    '/skills',
    '/url'
  ])
})

test('right cards of others are valid, with members that nobody here knows', (t: Assert) => {
  const flows = { clientCredentials: { tokenUrl: 'https://a.example/token', scopes: { read: 'to read' } } }
  const good = [
    cardWith({ x: 1 }),
    cardWith({
      securitySchemes: { oauth: { oauth2SecurityScheme: { flows } }, key: { apiKeySecurityScheme: { location: 'header', name: 'x' } } },
      securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }, { schemes: { key: {} } }]
    }),
    oldCardWith({ preferredTransport: 'GRPC', url: 'box:50051' }),
    oldCardWith({ securitySchemes: { o: { type: 'oauth2', flows }, m: { type: 'mutualTLS' } }, security: [{ o: ['read'], m: [] }] })
  ]
  for (const card of good) t.alike(validateCard(card).errors, [])
})

test('no value makes the validator throw, and none is told of at length', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.anything(), fc.anything(), (junk, part) => {
      const cards = [junk, cardWith({ skills: junk, securitySchemes: part }), oldCardWith({ additionalInterfaces: junk, security: [part] })]
      return cards.every((card) => {
        const { valid, errors } = validateCard(card)
        return valid === (errors.length === 0) && errors.length <= CARD_MAX_ERRORS && errors.every(({ path }) => path.length <= 256)
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
  t.alike(validateCard(hidden).errors, [{ path: '', message: 'cannot be read' }])
  t.is(validateCard(cardWith({ skills: Array.from({ length: 1000 }, () => 0) })).errors.length, CARD_MAX_ERRORS)
  const huge = validateCard(cardWith({ skills: Array.from({ length: CARD_MAX_VALUES }, () => 0) }))
  t.alike(huge.errors, [{ path: '', message: `has more than ${CARD_MAX_VALUES} values` }])
  t.absent(validateCard(JSON.parse('{"__proto__":{"name":"x"}}')).valid)
})
