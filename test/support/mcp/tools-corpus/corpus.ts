import type { CapabilityDescriptor } from '../../../../src/domain/card/card.js'
import { cardSchema } from '../../../../src/adapters/mcp/imported/imported-card.js'
import type { AgentDetail } from '../../../../src/ports/node-api.js'
import { LIFE_SERVERS } from './life-servers.js'
import { WORK_SERVERS } from './work-servers.js'

/** The machines of the corpus, their labels, and the servers that each of them imports. */
const MACHINES: Readonly<Record<string, { readonly labels: readonly string[]; readonly servers: readonly string[] }>> =
  {
    workstation: { labels: ['dev'], servers: ['git', 'files', 'forge', 'postgres', 'browser'] },
    office: { labels: ['work'], servers: ['calendar', 'mail', 'chat', 'wiki', 'issues', 'sheets', 'helpdesk'] },
    'ops-box': { labels: ['ops', 'linux'], servers: ['containers', 'cluster', 'ci', 'metrics', 'storage'] },
    'gpu-box': { labels: ['gpu'], servers: ['images', 'audio', 'memory'] },
    pi: { labels: ['home'], servers: ['home', 'music', 'weather', 'printer'] },
    cloud: { labels: ['zone=eu'], servers: ['maps', 'web', 'time', 'crm', 'billing'] }
  }

/** The agents of all imported servers of the corpus: 391 tools on six machines, as their cards show them. */
export function corpusAgents(): readonly AgentDetail[] {
  const servers = { ...WORK_SERVERS, ...LIFE_SERVERS }
  return Object.entries(MACHINES).flatMap(([machine, { labels, servers: names }]) =>
    names.map((name) => agentOf(name, { machine, labels, lines: servers[name] ?? '' }))
  )
}

function agentOf(
  server: string,
  { machine, labels, lines }: { readonly machine: string; readonly labels: readonly string[]; readonly lines: string }
): AgentDetail {
  return {
    id: server,
    address: `${server}@${machine}`,
    node: { id: machine, name: machine },
    tier: 'L1',
    origin: 'remote',
    sandboxId: null,
    labels,
    revision: 1,
    status: 'ready',
    name: server,
    version: '1.0.0',
    description: `Tools of the MCP server ${server}.`,
    capabilities: toolLines(lines).map((line) => capabilityOf(server, line)),
    prompts: [],
    source: null
  }
}

function toolLines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.includes('|'))
}

function capabilityOf(server: string, line: string): CapabilityDescriptor {
  const [name = '', description = '', ...rest] = line.split(' | ').map((part) => part.trim())
  return {
    id: `mcp_${server}_${name}`,
    name,
    description,
    inputSchema: cardSchema(schemaOf(rest.join(' | '))),
    outputSchema: {},
    idempotent: false,
    sideEffect: 'exec',
    tags: ['mcp']
  }
}

function schemaOf(text: string): Readonly<Record<string, unknown>> {
  const parameters = text.split(';').flatMap((one) => {
    const [, name, star, type = 'string', description = ''] = /^\s*(\w+)(\*?)(?::(\S+))?\s*(.*)$/.exec(one) ?? []
    return name === undefined ? [] : [{ name, isRequired: star === '*', schema: typeOf(type, description.trim()) }]
  })
  const required = parameters.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    ...(required.length === 0 ? {} : { required })
  }
}

function typeOf(type: string, description: string): object {
  const text = description === '' ? {} : { description }
  if (type.endsWith('[]')) return { ...text, type: 'array', items: { type: type.slice(0, -2) } }
  if (type.includes('|')) return { ...text, type: 'string', enum: type.split('|') }
  return type === 'any' ? text : { ...text, type }
}
