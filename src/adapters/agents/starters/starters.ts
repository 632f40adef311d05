import { type CapabilityDescriptor, NOT_GRANTED } from '../../../domain/card/card.js'
import type { Clock } from '../../../kit/clock.js'
import type { AgentDefinition, AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { AGENT_PROTOCOLS } from '../files/agent-file.js'
import { failure, hostAgent, type LocalAgent } from '../files/hosted-agent.js'
import { FilesStarter } from './starter-files.js'
import { FILES_CAPABILITIES } from './starter-files-card.js'
import { HOST_CAPABILITIES, hostReport } from './starter-host.js'
import { TEXT_CAPABILITIES, textStats } from './starter-text.js'

/** Where the starters come from, as `AgentDefinition.source`. */
export const BUILT_IN = 'built-in'

/** Ids of the agents that ship with the node. */
export const STARTER_IDS = ['host', 'text', 'files'] as const

/** Capabilities of `files` that need `agents.writeGrants`. */
const WRITES: ReadonlySet<string> = new Set(['files.write', 'files.append'])

/** Dependencies of {@link createStarters}. */
export interface StarterDeps {
  /** Directories that `files` may read (config key `agents.grants`). */
  readonly grants: readonly string[]
  /** Directories that `files` may write (config key `agents.writeGrants`). Default: none. */
  readonly writeGrants?: readonly string[]
  readonly clock: Clock
}

/** The agents that ship with the node and run in its process: `host`, `text` and `files`. */
export function createStarters({ grants, writeGrants = [], clock }: StarterDeps): readonly LocalAgent[] {
  const files = new FilesStarter({ grants, writeGrants, clock })
  return [
    starter({
      id: 'host',
      description: 'Reports on the machine of this node.',
      capabilities: HOST_CAPABILITIES,
      clock,
      work: () => hostReport()
    }),
    starter({
      id: 'text',
      description: 'Counts and fingerprints texts.',
      capabilities: TEXT_CAPABILITIES,
      clock,
      work: (task) => textStats(task.input)
    }),
    starter({
      id: 'files',
      description: 'Searches, reads and writes files in the directories that the config of this node grants.',
      capabilities: FILES_CAPABILITIES.map((one) => {
        const needed = WRITES.has(one.id) ? writeGrants : grants
        return needed.length > 0 ? one : { ...one, tags: [...(one.tags ?? []), NOT_GRANTED] }
      }),
      clock,
      work: (task, signal) => files.run(task, signal)
    })
  ]
}

interface Starter {
  readonly id: (typeof STARTER_IDS)[number]
  readonly description: string
  readonly capabilities: readonly CapabilityDescriptor[]
  readonly clock: Clock
  readonly work: (task: AgentTask, signal: AbortSignal) => AgentOutcome | Promise<AgentOutcome>
}

function starter({ id, description, capabilities, clock, work }: Starter): LocalAgent {
  const definition: AgentDefinition = {
    id,
    name: id,
    version: '1.0.0',
    description,
    tier: null,
    sandboxId: null,
    protocols: AGENT_PROTOCOLS,
    capabilities,
    limits: { timeoutMs: 60_000, concurrency: 4, maxOutputBytes: 10 * 1024 * 1024 },
    runtime: 'starter',
    source: BUILT_IN
  }
  const run = async (task: AgentTask, signal: AbortSignal): Promise<AgentOutcome> => {
    if (!capabilities.some((one) => one.id === task.capability))
      return failure('TASK_FAILED', `the agent ${id} has no capability ${task.capability}`)
    return work(task, signal)
  }
  return hostAgent({
    definition,
    clock,
    runtime: { run: (task, context) => run(task, context.signal), end: () => Promise.resolve() }
  })
}
