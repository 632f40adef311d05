import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { shellWord } from '../../../kit/text.js'
import { DEFAULT_TIER_ASSIGNMENTS } from '../../../domain/routing/tier-rules.js'
import { type Tier, type TierText, tierText } from '../../../domain/routing/tier.js'
import { hasIdForm, ID_RULE, idFault } from '../files/agent-identity.js'
import { checkAgentDirectory } from '../files/check-file.js'
import { STARTER_IDS } from '../starters/starters.js'

/** Sets of agents with their tiers, by name. */
const PRESETS: Readonly<Record<string, Readonly<Record<string, Tier>>>> = { planetary: DEFAULT_TIER_ASSIGNMENTS }

const NO_OTHERS = { dirs: [], starters: false } as const

/** Options of {@link writeNewAgents}. */
export interface NewAgents {
  /** Where the files go, absolute; made when it is not there. */
  readonly dir: string
  /** Id of the agent, and the file's name; null: every agent of the preset. */
  readonly name: string | null
  /** null: an agent whose tier is its node's. */
  readonly preset: string | null
  /** Other agents of the node, whose ids are taken. Default: none. */
  readonly others?: { readonly dirs: readonly string[]; readonly starters: boolean }
}

/** A file that was written. */
export interface NewAgentFile {
  readonly id: string
  /** null: its node's. */
  readonly tier: TierText | null
  readonly file: string
}

/**
 * Writes agent files that work unchanged: each has one capability, `<id>.run`, whose program answers with its task. No
 * file is overwritten: when one exists, none is written.
 * @throws NodeError USAGE (no name, or one that no agent may have), AGENT_NOT_FOUND (not in the preset), CONFLICT
 * (another agent of the node has the id), FILE_EXISTS; errors of the file system
 */
export async function writeNewAgents({
  dir,
  name,
  preset,
  others = NO_OTHERS
}: NewAgents): Promise<readonly NewAgentFile[]> {
  const files = tiersOf(name, preset).map(([id, tier]) => ({
    id,
    tier: tier === null ? null : tierText(tier),
    file: path.join(dir, `${id}.md`)
  }))
  for (const one of files) checkName(one)
  if (others.starters) refuseStarters(files)
  for (const place of new Set([dir, ...others.dirs])) await refuseTaken(files, place)
  await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const made: string[] = []
  try {
    for (const one of files) {
      await fs.writeFile(one.file, textOf(one), { flag: 'wx', mode: 0o600 })
      made.push(one.file)
    }
  } catch (error) {
    for (const file of made) await fs.rm(file, { force: true })
    const existing = files[made.length]?.file ?? dir
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new NodeError('FILE_EXISTS', `there is a file ${existing} already`, {
        next: [`a2a-node agents check ${shellWord(existing)}`]
      })
    throw error
  }
  return files
}

function refuseStarters(files: readonly NewAgentFile[]): void {
  const one = files.find(({ id }) => (STARTER_IDS as readonly string[]).includes(id))
  if (one === undefined) return
  throw new NodeError(
    'CONFLICT',
    `the node has an agent "${one.id}" already: it is one of the starters (${STARTER_IDS.join(', ')})`,
    {
      next: [`a2a-node agents new my-${one.id}`]
    }
  )
}

/** A file of another name may hold the id: the node would serve only one of the two. */
async function refuseTaken(files: readonly NewAgentFile[], dir: string): Promise<void> {
  for (const { ok, id, file } of await checkAgentDirectory(dir)) {
    const isTaken = ok && files.some((one) => one.id === id && one.file !== file)
    if (!isTaken) continue
    const next = [`a2a-node agents check ${shellWord(file)}`, `a2a-node agents new ${shellWord(`${id}-2`)}`]
    throw new NodeError('CONFLICT', `the node has an agent "${id}" already, in ${file}`, { next })
  }
}

function tiersOf(name: string | null, preset: string | null): readonly (readonly [string, Tier | null])[] {
  if (preset === null) {
    if (name === null) throw new NodeError('USAGE', 'what is the agent called?')
    return [[name, null]]
  }
  const tiers = Object.hasOwn(PRESETS, preset) ? PRESETS[preset] : undefined
  if (tiers === undefined)
    throw new NodeError('USAGE', `there is no preset ${preset}; there are: ${Object.keys(PRESETS).join(', ')}`)
  const all = Object.entries(tiers)
  const chosen = name === null ? all : all.filter(([id]) => id === name)
  if (chosen.length > 0) return chosen
  const names = Object.keys(tiers)
  throw new NodeError('AGENT_NOT_FOUND', `the preset ${preset} has no agent ${name}; it has ${names.join(', ')}`, {
    data: { names },
    next: ['a2a-node agents new --help']
  })
}

/** The name is an agent's id and a file's name. */
function checkName({ id }: NewAgentFile): void {
  const reason = id.startsWith('.') ? 'must not begin with a dot' : hasIdForm(id) ? idFault(id) : ID_RULE
  if (reason !== null) throw new NodeError('USAGE', `an agent cannot be called "${id}": it ${reason}`)
}

function textOf({ id, tier }: Pick<NewAgentFile, 'id' | 'tier'>): string {
  const name = JSON.stringify(id)
  return `---
name: ${name}
description: ${JSON.stringify(`The agent ${id}: say here what it is good for.`)}
a2a:
  version: 0.1.0
  tier: ${tier === null ? 'null' : `${tier}  `}                    # L0 to L3, never more than the certificate of the node; null: as much
  capabilities:
    - id: ${JSON.stringify(`${id}.run`)}
      description: Answers with the task that it was given
      input: { type: object }
      output: { type: object }
      idempotent: true              # it may be repeated after an unknown outcome
      sideEffect: none              # none, read, write or exec
  runtime:
    type: command
    # Your program instead of cat. It reads one line of JSON ({taskId, capability, description, input, ...}) on its standard
    # input, and its standard output is the result; "{input.text}" as an argument is that value of the input.
    command: [cat]
  limits: { timeout: 5m, concurrency: 1 }
---
Instructions for whoever reads this file, or for a language model behind the program.
`
}
