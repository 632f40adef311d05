import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { AgentOutcome } from '../ports/agent-runtime.js'
import type { AgentLog } from '../adapters/agents/files/runtime-type.js'
import { type NewAgentFile, type NewAgents, writeNewAgents } from '../adapters/agents/process/new-files.js'
import { importAgentFiles, type ImportedFile, type ImportOptions } from '../adapters/agents/files/import-files.js'
import { runAgentFile as runFile } from '../adapters/agents/files/run-file.js'
import type { Config } from '../config/settings.js'
import { storeError } from '../adapters/storage/home/store-errors.js'
import { systemClock } from '../adapters/system/system-clock.js'
import { openLlm } from './open-llm.js'

/**
 * Writes files of new agents, a preset or one agent, without a node.
 * @throws NodeError USAGE, AGENT_NOT_FOUND, FILE_EXISTS, NO_PERMISSION, DISK_FULL
 */
export async function newAgentFiles(wanted: NewAgents): Promise<readonly NewAgentFile[]> {
  return await writeNewAgents(wanted).catch((error: unknown) => {
    throw storeError(error, wanted.dir)
  })
}

/**
 * Makes agent files of sub-agent files of other clients, without a node. @throws NodeError USAGE, NO_PERMISSION,
 * DISK_FULL
 */
export async function importAgents(wanted: ImportOptions): Promise<readonly ImportedFile[]> {
  return await importAgentFiles(wanted).catch((error: unknown) => {
    throw storeError(error, wanted.dir)
  })
}

/** Config and log of a run of an agent file. */
export interface FileRunSettings {
  /** Reads the config when the agent needs it. Default: none. */
  readonly config?: () => Promise<Config>
  /** Called with warnings beside the outcome. Default: ignored. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void
}

/**
 * Runs one capability (null: the default one) of an agent file once, without a node. Failures are outcomes, not errors.
 */
export async function runAgentFile(
  file: string,
  capability: string | null,
  { input, config, warn = () => {} }: FileRunSettings & { readonly input: unknown }
): Promise<AgentOutcome> {
  const clock = systemClock()
  const runDir = await mkdtemp(path.join(os.tmpdir(), 'a2a-node-run-'))
  try {
    const providers = async () => (await config?.())?.llm.providers ?? {}
    const llm = openLlm({ providers, env: process.env, clock, tools: null })
    const log: AgentLog = (level, message, fields = {}) => (level === 'warn' ? warn(message, fields) : undefined)
    const report = await runFile({
      file,
      input,
      ...(capability === null ? {} : { capability }),
      runDir,
      clock,
      log,
      llm
    })
    return report.outcome
  } finally {
    await rm(runDir, { recursive: true, force: true })
  }
}
