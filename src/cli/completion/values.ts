import type { NodeApi } from '../../ports/node-api.js'

/** How long a completion waits for the running node, in milliseconds. */
const WAIT_MS = 800
/** Values of a completion at most. */
const MAX_VALUES = 200
/** Other values are left out: shells expand the list, and members choose the names in it. */
const SAFE = /^\w[\w.@:-]{0,127}$/
const WAIT = { timeoutMs: WAIT_MS }

type ReadValues = (api: NodeApi) => Promise<readonly string[]>

/** The values of the running node, by kind. */
const VALUES: Readonly<Record<string, ReadValues>> = {
  peers: async (api) => (await api.call('peers.list', {}, WAIT)).peers.map(({ name }) => name),
  agents: async (api) => (await api.call('agents.list', {}, WAIT)).agents.map(({ address }) => address),
  documents: async (api) => (await api.call('documents.list', {}, WAIT)).documents.map(({ name }) => name),
  swarms: async (api) => (await api.call('swarm.list', {}, WAIT)).swarms.map(({ id }) => id),
  tasks: async (api) => (await api.call('tasks.list', { limit: MAX_VALUES }, WAIT)).tasks.map(({ id }) => id),
  contexts: async (api) => (await api.call('context.list', {}, WAIT)).contexts.map(({ id }) => id),
  approvals: async (api) => (await api.call('approvals.list', {}, WAIT)).approvals.map(({ id }) => id)
}

/** First arguments that take values of one kind, and commands whose `<id>` is one. */
const KINDS: Readonly<Record<string, string>> = {
  '<peer>': 'peers',
  '<agent>': 'agents',
  '<doc>': 'documents',
  'swarm <id>': 'swarms',
  'tasks <id>': 'tasks',
  'approvals <id>': 'approvals'
}

/** The kind of values that a command takes first, by its path and its arguments; null for none. */
export function valueKind(path: string, args: string | undefined): string | null {
  const [first = ''] = (args ?? '').split(' ')
  return KINDS[first] ?? KINDS[`${path.split(' ')[0] ?? ''} ${first}`] ?? null
}

/** Values of the running node that shells may expand. Empty when no node answers in time; never rejects. */
export async function completionValues(kind: string, api: () => NodeApi): Promise<readonly string[]> {
  const values = Object.hasOwn(VALUES, kind) ? VALUES[kind] : undefined
  if (values === undefined) return []
  try {
    return (await values(api())).filter((value) => SAFE.test(value)).slice(0, MAX_VALUES)
  } catch {
    return []
  }
}
