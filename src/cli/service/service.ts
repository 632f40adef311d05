import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { shellWord, shown } from '../../kit/text.js'
import type { ServiceCommand, ServicePlan } from './service-plan.js'
import { isOurUnit } from './units.js'

/** The end of a command; `code` null: there is no such program. */
export interface CommandEnd {
  readonly code: number | null
  /** The last lines of its output. */
  readonly output: string
}

/** Runs a command to its end, at most 60 s. */
export type RunCommand = (command: ServiceCommand) => Promise<CommandEnd>

const COMMAND_MS = 60_000

/** Runs a command of a service manager. Never rejects. */
export function runCommand([program = '', ...words]: ServiceCommand): Promise<CommandEnd> {
  return new Promise((resolve) => {
    execFile(program, words, { timeout: COMMAND_MS }, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim().split('\n').slice(-5).join('; ')
      if (error === null) resolve({ code: 0, output })
      else resolve({ code: error.code === 'ENOENT' ? null : typeof error.code === 'number' ? error.code : 1, output })
    })
  })
}

/** State of the file of a service. */
export type ServiceFile = 'absent' | 'same' | 'outdated' | 'foreign'

/** Compares the file of a service with its plan. @throws NodeError NO_PERMISSION */
export async function serviceFile({ file, text }: Pick<ServicePlan, 'file' | 'text'>): Promise<ServiceFile> {
  try {
    const found = await readFile(file, 'utf8')
    if (!isOurUnit(found)) return 'foreign'
    return found === text ? 'same' : 'outdated'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'absent'
    throw unwritable(file, error)
  }
}

/** The error of a file of that name of another program. */
export function foreignFile(file: string): NodeError {
  return new NodeError('CONFLICT', `${file} was not written by a2a-node; it is left alone`, {
    next: [`cat ${shellWord(file)}`]
  })
}

/**
 * Writes the file of a service and starts it.
 * @returns failed optional commands, for people
 * @throws NodeError CONFLICT when a command fails: a file that was not there is removed again; NO_PERMISSION
 */
export async function installService(plan: ServicePlan, run: RunCommand): Promise<readonly string[]> {
  const { file, text } = plan
  const before = await readFile(file, 'utf8').catch(() => null)
  try {
    await mkdir(path.dirname(file), { recursive: true })
    await writeFile(file, text, { mode: 0o644 })
  } catch (error) {
    throw unwritable(file, error)
  }
  try {
    for (const command of [plan.verify, ...plan.install]) await mustRun(command, run, command === plan.verify)
  } catch (error) {
    if (before === null) await rm(file, { force: true })
    else await writeFile(file, before)
    throw error
  }
  const failed: string[] = []
  for (const command of plan.optional) {
    const { code, output } = await run(command)
    if (code !== 0) failed.push(`${commandText(command)} failed: ${shown(output, 500)}`)
  }
  return failed
}

/** Stops a service and removes its file. @throws NodeError CONFLICT when a command fails; NO_PERMISSION */
export async function uninstallService(plan: ServicePlan, run: RunCommand): Promise<void> {
  for (const command of plan.uninstall) await mustRun(command, run)
  await rm(plan.file, { force: true }).catch((error: unknown) => Promise.reject(unwritable(plan.file, error)))
  for (const command of plan.forget) await mustRun(command, run)
}

async function mustRun(command: ServiceCommand, run: RunCommand, mayBeMissing = false): Promise<void> {
  const { code, output } = await run(command)
  if (code === 0 || (code === null && mayBeMissing)) return
  const reason = code === null ? 'there is no such program' : shown(output === '' ? `exit code ${code}` : output, 1000)
  throw new NodeError('CONFLICT', `${commandText(command)} failed: ${reason}`, { next: [commandText(command)] })
}

/** A command as it would be typed. */
export function commandText(command: ServiceCommand): string {
  return command.map(shellWord).join(' ')
}

function unwritable(file: string, error: unknown): NodeError {
  return new NodeError('NO_PERMISSION', `${file}: ${fileReason(error)}`, {
    cause: error,
    next: ['a2a-node service install --dry-run']
  })
}
