import test, { type Assert } from 'brittle'
import { CARD_MAX_VALUES, checkCard } from '../../../../src/adapters/a2a/remote/card-check.js'
import { interfacesOf, pathIdFrom, pathIdOf, segmentOf } from '../../../../src/adapters/a2a/cards/card-interfaces.js'
import {
  agentSubject,
  MESH_EXTENSION,
  NODE_CARD_MAX_SKILLS,
  nodeSubject
} from '../../../../src/adapters/a2a/cards/card-subject.js'
import { toCardV03, toHybridCard } from '../../../../src/adapters/a2a/cards/card-v03.js'
import { toCardV1 } from '../../../../src/adapters/a2a/cards/card-v1.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import { capability } from '../../../support/fake-agents.js'
import type { AgentDetail } from '../../../../src/ports/node-api.js'
import { BASE } from '../../../support/a2a-cards.js'
import { actor } from '../../../support/membership.js'

const HOST = { base: BASE, pushNotifications: false }

function detailOf(changes: Partial<AgentDetail> = {}): AgentDetail {
  return {
    id: 'text',
    address: 'text@a',
    node: { id: actor('owner').id, name: 'a' },
    tier: 'L2',
    origin: 'local',
    sandboxId: null,
    labels: [],
    revision: 3,
    status: 'ready',
    name: 'Text',
    version: '1.2.0',
    description: '',
    capabilities: [
      capability('text.stats', {
        name: 'Statistics',
        tags: ['text'],
        examples: ['count this'],
        inputModes: ['text/plain']
      })
    ],
    prompts: [],
    source: null,
    ...changes
  }
}

test('a card of 1.0 describes the skills of the agent, its address and its facts in the mesh', (t: Assert) => {
  const card = toCardV1(agentSubject(detailOf(), null, HOST))
  const [skill] = card.skills
  t.alike(skill, {
    id: 'text.stats',
    name: 'Statistics',
    description: 'Statistics',
    tags: ['text'],
    examples: ['count this'],
    inputModes: ['text/plain']
  })
  t.is(card.description, 'Text', 'a server without a title has its name')
  t.alike(card.supportedInterfaces, interfacesOf({ base: BASE }, 'text'))
  t.is(card.supportedInterfaces[0]?.url, `${BASE}/agents/text`)
  t.alike(
    card.capabilities.extensions.map(({ uri, params }) => ({ uri, params })),
    [
      {
        uri: MESH_EXTENSION,
        params: { agentId: 'text', nodeId: actor('owner').id, nodeName: 'a', tier: 'L2', revision: 3 }
      }
    ]
  )
  t.alike(
    [card.capabilities.streaming, card.capabilities.pushNotifications, card.capabilities.extendedAgentCard],
    [true, false, true]
  )
})

test('the card for both versions has the members of each', (t: Assert) => {
  const subject = agentSubject(detailOf({ sandboxId: 'lab' }), null, { ...HOST, pushNotifications: true })
  const card = toHybridCard(subject)
  t.alike([card.protocolVersion, card.url, card.preferredTransport], ['0.3.0', `${BASE}/agents/text`, 'JSONRPC'])
  t.alike(
    card.additionalInterfaces.map(({ transport }) => transport),
    ['JSONRPC', 'HTTP+JSON']
  )
  t.alike(card.security, [{ bearer: [] }])
  t.alike(card.securitySchemes['bearer'], {
    type: 'http',
    scheme: 'bearer',
    httpAuthSecurityScheme: { scheme: 'Bearer' }
  })
  t.ok(
    card.supportsAuthenticatedExtendedCard && card.capabilities.extendedAgentCard && card.capabilities.pushNotifications
  )
  t.is(card.capabilities.extensions[0]?.params['sandboxId'], 'lab')
  t.is(card.supportedInterfaces.length, 4)
})

test('a card names the interface over the mesh by the setting only, and that of an agent of another node never', (t: Assert) => {
  const detail = detailOf()
  const mesh = (card: { readonly interfaces: readonly { readonly url: string }[] }) =>
    card.interfaces.filter(({ url }) => url.startsWith('a2a-mesh:')).length
  const host = { ...HOST, meshNode: detail.node.id, version: '1.0.0' }
  const node = { ...detail.node, tier: 'L0' as const }
  t.alike([mesh(agentSubject(detail, null, host)), mesh(nodeSubject({ node }, [], host))], [0, 0])
  const named = { ...host, meshInterface: true }
  t.alike([mesh(agentSubject(detail, null, named)), mesh(nodeSubject({ node }, [], named))], [2, 2])
  t.is(mesh(agentSubject(detail, null, { ...named, meshNode: 'other' })), 0)
})

test('an agent of another node keeps what that node signed', (t: Assert) => {
  const b = actor('b')
  const { capabilities } = detailOf()
  const body = {
    id: 'text',
    name: 'Text',
    version: '1.2.0',
    description: '',
    tier: 2 as const,
    protocols: [],
    endpoints: [],
    capabilities
  }
  const original = seal('card', { ...body, revision: 3 }, b)
  const told = detailOf({ origin: 'remote', address: 'text@b', node: { id: b.id, name: 'b' } })
  const card = toCardV1(agentSubject(told, original, HOST))
  t.is(card.supportedInterfaces[0]?.url, `${BASE}/agents/text@b`)
  t.alike(card.capabilities.extensions[0]?.params['original'], original)
})

test('cards of every version name the provider of an agent, and the card of a node that of the node', (t: Assert) => {
  const [ofAgent, ofNode] = [
    { organization: 'Agent Works', url: 'https://agent.example' },
    { organization: 'Node Works', url: 'https://node.example' }
  ]
  const node = { id: actor('owner').id, name: 'a', tier: 'L0' as const }
  for (const form of [toCardV1, toCardV03, toHybridCard]) {
    t.alike(form(agentSubject(detailOf({ provider: ofAgent }), null, { ...HOST, provider: ofNode })).provider, ofAgent)
    t.absent(
      'provider' in form(agentSubject(detailOf(), null, { ...HOST, provider: ofNode })),
      'the node names no provider for others'
    )
    t.alike(form(nodeSubject({ node }, [], { ...HOST, provider: ofNode, version: '1.0.0' })).provider, ofNode)
    t.absent('provider' in form(nodeSubject({ node }, [], { ...HOST, version: '1.0.0' })))
  }
})

test('paths name a local agent by its id and another one by id and node; any node name survives the path segment', (t: Assert) => {
  t.is(pathIdOf(detailOf()), 'text')
  t.is(pathIdOf(detailOf({ origin: 'remote', address: 'text@b' })), 'text@b')
  t.is(pathIdOf(detailOf({ id: '..', address: '..@a' })), '..@a', 'dots alone would be another path')
  for (const name of ['text@a b/c', 'text@ü%?#', 'text@\ud800']) {
    const segment = segmentOf(name)
    t.absent(/[/?#\s]/.test(segment), segment)
    t.is(pathIdFrom(segment), Buffer.from(name).toString())
    t.is(new URL(`${BASE}/agents/${segment}/x`).pathname, `/agents/${segment}/x`)
  }
  t.is(pathIdFrom('%'), null)
})

test('a node card has a bounded number of skills and states how many it omits', (t: Assert) => {
  const node = { id: actor('owner').id, name: 'a', tier: 'L0' as const }
  const wide = (id: string, size: number): AgentDetail =>
    detailOf({
      id,
      capabilities: Array.from({ length: 500 }, (_, at) => capability(`c${at}`, { description: 'x'.repeat(size) }))
    })
  const subjectOf = (size: number): ReturnType<typeof nodeSubject> =>
    nodeSubject(
      { node },
      ['one', 'two', 'three', 'four', 'five', 'six'].map((id) => wide(id, size)),
      { ...HOST, version: '1.0.0' }
    )
  const many = subjectOf(1)
  t.is(many.skills.length, NODE_CARD_MAX_SKILLS)
  t.is(many.extensions[0]?.params['skillsLeftOut'], 3000 - NODE_CARD_MAX_SKILLS)
  t.is(many.skills[500]?.id, 'two/c0')
  const large = subjectOf(4096)
  t.ok(JSON.stringify(large.skills).length <= 524_288 && large.skills.length > 100)
  const { findings } = checkCard(JSON.parse(JSON.stringify(toHybridCard(many))))
  t.alike(
    findings.map(({ path, wrong }) => [path, wrong]),
    [['/skills', `has ${NODE_CARD_MAX_SKILLS} entries`]],
    'more than one import takes, and no other fault'
  )
  t.ok(NODE_CARD_MAX_SKILLS * 8 < CARD_MAX_VALUES)
})
