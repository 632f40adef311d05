import { mkdtemp, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { AgentOutcome } from '../ports/agent-runtime.js'
import type { AgentLog } from '../adapters/agents/files/runtime-type.js'
import { type NewAgentFile, type NewAgents, writeNewAgents } from '../adapters/agents/process/new-files.js'
import { importAgentFiles, type ImportedFile, type ImportOptions } from '../adapters/agents/files/import-files.js'
import {
  type AgentFileReport,
  asSubAgent,
  checkAgentDirectory,
  checkAgentFile
} from '../adapters/agents/files/check-file.js'
import { loadCheckedFiles } from '../adapters/agents/files/load-file.js'
import { ProcessGroups } from '../adapters/agents/process/process-groups.js'
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

/** Reports on checked agent files. */
export interface AgentFilesReport {
  /** The place is a directory. */
  readonly isDirectory: boolean
  readonly files: readonly AgentFileReport[]
}

/**
 * Checks an agent file, or all of a directory, and loads their programs in processes of their own: code of the files
 * runs. Sub-agent files of other clients are no faults. `sandbox`: the one that the node is certified for; null: none.
 * Never rejects for a faulty file.
 */
export async function checkAgentFiles(place: string, sandbox: string | null): Promise<AgentFilesReport> {
  const isDirectory = await stat(place).then(
    (stats) => stats.isDirectory(),
    () => false
  )
  const checked = isDirectory ? await checkAgentDirectory(place, sandbox) : [await checkAgentFile(place, sandbox)]
  const files = await Promise.all(checked.map(asSubAgent))
  return {
    isDirectory,
    files: await inRunDir(async (runDir) => {
      const groups = new ProcessGroups(runDir)
      try {
        return await loadCheckedFiles(files, { groups, env: process.env, clock: systemClock(), log: () => {} })
      } finally {
        await groups.close()
      }
    })
  }
}

async function inRunDir<T>(work: (runDir: string) => Promise<T>): Promise<T> {
  const runDir = await mkdtemp(path.join(os.tmpdir(), 'a2a-node-run-'))
  try {
    return await work(runDir)
  } finally {
    await rm(runDir, { recursive: true, force: true })
  }
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
  return await inRunDir(async (runDir) => {
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
  })
}
