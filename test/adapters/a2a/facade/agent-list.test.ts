import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { type AgentPage, listedAgents, readAgentQuery } from '../../../../src/adapters/a2a/facade/agent-list.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { AgentDetail, AgentInfo, NodeApi } from '../../../../src/ports/node-api.js'
import { facadeScene } from '../../../support/facade-scene.js'
import { holds } from '../../../support/holds.js'

interface Listed {
  readonly id: string
  readonly node: string
  readonly tags: readonly string[]
  readonly skill: string
}

const TAGS = ['red', 'blue']
const listed: fc.Arbitrary<Listed> = fc.record({
  id: fc.constantFrom('a', 'b', 'b.c', 'b-c', 'z9'),
  node: fc.constantFrom('self', 'n1', 'n2'),
  tags: fc.subarray(TAGS),
  skill: fc.constantFrom('text.stats', 'text.send')
})
const agentsOf = fc.uniqueArray(listed, { selector: ({ id, node }) => `${id}@${node}`, maxLength: 15 })

/** The API of a node with these agents, in any order. */
function apiOf(agents: () => readonly Listed[]): NodeApi {
  const info = ({ id, node, skill }: Listed) => ({
    id,
    address: `${id}@${node}`,
    node: { id: node, name: `name of ${node}` },
    tier: 'L0',
    origin: node === 'self' ? 'local' : 'remote',
    status: 'ready',
    capabilities: [skill]
  })
  const call = (name: string, { agent }: { agent: string }): Promise<unknown> => {
    if (name === 'agents.list')
      return Promise.resolve({ agents: agents().map((one) => info(one) as unknown as AgentInfo) })
    const found = agents().find(({ id, node }) => `${id}@${node}` === agent)
    if (found === undefined) return Promise.reject(new NodeError('AGENT_NOT_FOUND', 'gone'))
    const { id, tags, skill } = found
    const capabilities = [{ id: skill, name: 'Skill', description: 'Counts WORDS', tags }]
    const detail = { ...info(found), name: id, version: '1.0.0', description: `about ${id}`, labels: [], capabilities }
    return Promise.resolve(detail as unknown as AgentDetail)
  }
  return { call } as unknown as NodeApi
}

async function pagesOf(
  api: NodeApi,
  query: string,
  onPage: () => void = () => {}
): Promise<AgentPage['agents'][number][]> {
  const all: AgentPage['agents'][number][] = []
  for (let token = ''; ; ) {
    const page = await listedAgents(api, readAgentQuery(`${query}&pageToken=${encodeURIComponent(token)}`))
    all.push(...page.agents)
    token = page.nextPageToken
    onPage()
    if (token === '') return all
  }
}

test('the pages of a list together are the whole list, for any agents, filter and size of pages', async (t: Assert) => {
  await holds(
    t,
    fc.asyncProperty(
      agentsOf,
      fc.constantFrom('', 'skill=text.send', 'tag=red', 'node=n1', 'q=words+RED', 'q=b.c&tag=blue'),
      fc.integer({ min: 1, max: 6 }),
      async (agents, filter, size) => {
        const api = apiOf(() => agents)
        const whole = await listedAgents(api, readAgentQuery(filter))
        const paged = await pagesOf(api, `${filter}&pageSize=${size}`)
        const reversed = await listedAgents(
          apiOf(() => agents.toReversed()),
          readAgentQuery(filter)
        )
        return (
          JSON.stringify(paged) === JSON.stringify(whole.agents) &&
          JSON.stringify(reversed) === JSON.stringify(whole) &&
          whole.nextPageToken === ''
        )
      }
    ),
    300
  )
})

test('agents that stay are in the pages once, whichever others come and go between two pages', async (t: Assert) => {
  await holds(
    t,
    fc.asyncProperty(
      fc.array(agentsOf, { minLength: 1, maxLength: 6 }),
      agentsOf,
      fc.integer({ min: 1, max: 4 }),
      async (others, stay, size) => {
        const isStaying = new Set(stay.map(({ id, node }) => `${id}@${node}`))
        let page = 0
        const agents = () => [
          ...(others[page % others.length] ?? []).filter(({ id, node }) => !isStaying.has(`${id}@${node}`)),
          ...stay
        ]
        const paged = await pagesOf(apiOf(agents), `pageSize=${size}`, () => page++)
        const names = paged.map(({ name }) => (name.includes('@') ? name : `${name}@self`)).sort()
        const seen = names.filter((name) => isStaying.has(name.replace('name of ', '')))
        return (
          JSON.stringify(seen.map((name) => name.replace('name of ', ''))) === JSON.stringify([...isStaying].sort())
        )
      }
    )
  )
})

test('agents are found by skill, tag, node and words over HTTP; other parameters are refused', async (t: Assert) => {
  const { ask, node } = await facadeScene(t)
  const names = async (query: string): Promise<unknown> =>
    ((await ask(`/agents?${query}`)).body['agents'] as { name: string }[]).map(({ name }) => name)
  t.alike(await names('skill=echo.do'), ['echo'])
  t.alike(await names('q=ECHO'), ['echo'])
  t.alike(await names('tag=none'), [])
  t.alike(await names(`node=${node.id}&pageSize=2`), ['asks', 'echo'])
  t.alike(await names('node=elsewhere'), [])
  const first = await ask('/v1/agents?pageSize=3')
  const rest = await ask(`/v1/agents?pageSize=3&pageToken=${encodeURIComponent(String(first.body['nextPageToken']))}`)
  const both = [first, rest].flatMap(({ body }) => (body['agents'] as { name: string }[]).map(({ name }) => name))
  t.alike([both, rest.body['nextPageToken']], [['asks', 'echo', 'fails', 'slow', 'talk'], ''])
  for (const query of [
    'skil=x',
    'skill=a&skill=b',
    'q=',
    `tag=${'x'.repeat(257)}`,
    'pageSize=0',
    'pageSize=101',
    'pageSize=x',
    'pageToken=x',
    'pageToken=9.a@b'
  ]) {
    const { status, body } = await ask(`/agents?${query}`)
    t.alike([status, body['error']], [400, 'invalid_request'], query)
  }
})

test('a caller in a sandbox finds the agents of its sandbox alone', async (t: Assert) => {
  const { ask } = await facadeScene(t, { principal: { sandboxId: 'ci' } })
  t.alike((await ask('/agents?q=echo')).body, { agents: [], nextPageToken: '' })
})
