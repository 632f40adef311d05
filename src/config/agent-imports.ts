import { z } from 'zod'
import { text } from './entry-values.js'
import { power } from './mcp-servers.js'

/** Directories of sub-agent files in one config. */
export const MAX_AGENT_IMPORTS = 32

/** A directory of sub-agent files, as the config file names it. */
export interface AgentImportSetting {
  /** Absolute, `~/...`, or relative to the config file. */
  readonly dir: string
  readonly runtime: 'llm' | 'command'
  /** Of `llm`: a provider, or provider/model; null: the only provider. */
  readonly model: string | null
  /** null: the certificate's. */
  readonly tier: 'L0' | 'L1' | 'L2' | 'L3' | null
  /** Of `command`: program and arguments; null: the client that a file is for. */
  readonly command: readonly string[] | null
}

const entry = z
  .strictObject({
    dir: text(4096),
    runtime: z.enum(['llm', 'command'], 'must be llm or command'),
    model: text(320).nullable().default(null),
    tier: power.tier,
    command: z
      .array(text(32_768), 'must be a list of the program and its arguments')
      .min(1, 'must name a program')
      .max(256)
      .nullable()
      .default(null)
  })
  .superRefine((one, context) => {
    const wrong = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message })
    if (one.runtime === 'command' && one.model !== null) wrong('model', 'goes with runtime: llm only')
    if (one.runtime === 'llm' && one.command !== null) wrong('command', 'goes with runtime: command only')
  })

/** The map of directories by name. */
export const agentImportsSchema: z.ZodType<Readonly<Record<string, AgentImportSetting>>> = z
  .record(
    z
      .string()
      .max(32, 'must be a name of at most 32 characters')
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a name of a-z, 0-9 and single dashes between them'),
    entry,
    'must be a mapping of names'
  )
  .refine((all) => Object.keys(all).length <= MAX_AGENT_IMPORTS, `has more than ${MAX_AGENT_IMPORTS} directories`)

/** A model that no entry names: the only provider; null when there are none or several. */
export function onlyProvider(providers: Readonly<Record<string, unknown>>): string | null {
  const names = Object.keys(providers)
  return names.length === 1 ? (names[0] ?? null) : null
}
