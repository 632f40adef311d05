import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { makePrivateDirectory } from '../../../adapters/control/private-directory.js'
import { userHome } from '../../../config/paths.js'
import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isSet, type Options, textOption } from '../../options.js'
import { runningNode } from '../../running.js'
import { type ServiceHost, type ServicePlan, servicePlan } from '../../service/service-plan.js'
import {
  commandText,
  foreignFile,
  installService,
  runCommand,
  serviceFile,
  type ServiceFile,
  uninstallService
} from '../../service/service.js'
import type { ServiceSpec } from '../../service/units.js'
import { ownProgram } from '../../start/own-package.js'
import type { Output } from '../../terminal/output.js'
import { agreed } from '../../terminal/agreed.js'

const SCHEMA = 'service@1'
const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/

/** `service install`: shows file and commands, asks on a terminal, and makes the node start after boot. */
export const installNode: Action = async (context, _args, options) => {
  const { output } = context
  const plan = planOf(context, options)
  const state = await serviceFile(plan)
  if (state === 'foreign') throw foreignFile(plan.file)
  if (!output.json) printPlan(output, `writes  ${plan.file}`, [plan.verify, ...plan.install, ...plan.optional])
  if (isSet(options, 'dryRun')) return report(output, plan, { done: 'none', isDryRun: true })
  await refuseRunning(context, state)
  if (!(await agreed(output, options, { question: 'install it?' })))
    throw new NodeError('CANCELED', 'nothing was changed', { next: ['a2a-node service install --dry-run'] })
  if (!isSet(options, 'system')) await makePrivateDirectory(context.paths().home)
  const warnings = await installService(plan, runCommand)
  for (const warning of warnings)
    output.note(`warning: ${warning}; without it the node starts at the first login, not at boot`)
  return report(output, plan, { done: 'installed', isDryRun: false, warnings })
}

/** `service uninstall`: stops the service of this home and removes its file. */
export const uninstallNode: Action = async (context, _args, options) => {
  const { output } = context
  const plan = planOf(context, options)
  const state = await serviceFile(plan)
  if (state === 'foreign') throw foreignFile(plan.file)
  if (state === 'absent') return report(output, plan, { done: 'none', isDryRun: false })
  if (!output.json) printPlan(output, `removes ${plan.file}`, [...plan.uninstall, ...plan.forget])
  if (isSet(options, 'dryRun')) return report(output, plan, { done: 'none', isDryRun: true })
  if (!(await agreed(output, options, { question: 'remove it?' })))
    throw new NodeError('CANCELED', 'nothing was changed', { next: ['a2a-node service uninstall --dry-run'] })
  await uninstallService(plan, runCommand)
  return report(output, plan, { done: 'removed', isDryRun: false })
}

/** `service status`: the file of the service of this home, and whether it runs. */
export const serviceStatus: Action = async (context, _args, options) => {
  const { output } = context
  const plan = planOf(context, options)
  const state = await serviceFile(plan)
  const isActive = state !== 'absent' && state !== 'foreign' && (await runCommand(plan.isActive)).code === 0
  const { manager, file } = plan
  if (output.json) output.object('service-status@1', { manager, file, state, isActive })
  else {
    output.print(`${manager}  ${shown(file, 4096)}: ${STATES[state]}${isActive ? ', running' : ', not running'}`)
    if (state === 'absent' || state === 'outdated') output.note(`  try: ${output.hint('a2a-node service install')}`)
  }
  return EXIT.ok
}

const STATES: Readonly<Record<ServiceFile, string>> = {
  absent: 'not installed',
  same: 'installed',
  outdated: 'installed for another program, path or version',
  foreign: 'of another program'
}

/** A node outside the service holds the home, so the one of the service would end at once. */
async function refuseRunning(context: CommandContext, state: ServiceFile): Promise<void> {
  if (state !== 'absent') return
  const running = await runningNode(context.paths().socket)
  if (running === null) return
  throw new NodeError('ALREADY_RUNNING', `the node of this home runs already (pid ${running.pid}): stop it first`, {
    next: ['a2a-node stop']
  })
}

/** The plan of the service of this home on this machine. @throws NodeError USAGE, CONFLICT */
function planOf(context: CommandContext, options: Options): ServicePlan {
  return servicePlan(specOf(context, options), thisHost(context.env))
}

/** The service of the user for this home; null on a machine without a known manager. */
export function ownService(context: CommandContext): ServicePlan | null {
  try {
    return planOf(context, {})
  } catch (error) {
    if (error instanceof NodeError && error.code === 'CONFLICT') return null
    throw error
  }
}

/** This machine, for plans of services. */
export function thisHost(env: CommandContext['env']): ServiceHost {
  const home = userHome(env)
  const configHome = env['XDG_CONFIG_HOME'] ?? ''
  return {
    platform: process.platform,
    userHome: home,
    configHome: path.isAbsolute(configHome) ? configHome : path.join(home, '.config'),
    uid: process.getuid?.() ?? 0,
    hasSystemd: existsSync('/run/systemd/system')
  }
}

function specOf(context: CommandContext, options: Options): ServiceSpec {
  const { home, isChosen, logFile } = context.paths()
  return {
    name: isChosen ? `a2a-node-${createHash('sha256').update(home).digest('hex').slice(0, 8)}` : 'a2a-node',
    program: ownProgram(),
    home: isChosen ? home : null,
    // The program starts the Node that comes first.
    path: [path.dirname(process.execPath), context.env['PATH'] ?? ''].filter((one) => one !== '').join(path.delimiter),
    logFile,
    account: accountOf(options, isChosen ? home : null)
  }
}

/** The account of a service of the machine; null for one of the user. @throws NodeError USAGE */
function accountOf(options: Options, home: string | null): string | null {
  const runAs = textOption(options, 'runAs')
  if (!isSet(options, 'system')) {
    if (runAs === undefined) return null
    throw new NodeError('USAGE', '--run-as belongs to --system', { next: ['a2a-node service install --help'] })
  }
  const account = runAs ?? process.env['SUDO_USER'] ?? os.userInfo().username
  if (!ACCOUNT.test(account)) throw new NodeError('USAGE', `${JSON.stringify(account)} is no name of an account`)
  if (home !== null && existsSync(home)) return account
  const next = [`sudo a2a-node service install --system --run-as ${account} --home <home of that account>`]
  throw new NodeError('USAGE', 'a service of the machine needs an existing home: --home <directory>', { next })
}

function printPlan(output: Output, place: string, commands: readonly (readonly string[])[]): void {
  output.print(shown(place, 4096))
  for (const command of commands) output.print(`runs    ${shown(commandText(command), 4096)}`)
}

interface ServiceEnd {
  readonly done: 'installed' | 'removed' | 'none'
  readonly isDryRun: boolean
  readonly warnings?: readonly string[]
}

function report(output: Output, plan: ServicePlan, { done, isDryRun, warnings = [] }: ServiceEnd): number {
  const { manager, file, text, install, uninstall } = plan
  if (output.json)
    output.object(SCHEMA, { manager, file, text, install, uninstall, action: done, dryRun: isDryRun, warnings })
  else if (isDryRun) output.note('nothing was changed (--dry-run)')
  else if (done === 'none') output.print(`nothing to do: there is no ${shown(file, 4096)}`)
  else if (done === 'removed') output.print('removed; the data of the node stays in its home')
  else {
    output.print('The node runs, and starts again after a boot or a crash.')
    output.print(`  try: ${output.hint('a2a-node status')}`)
  }
  return EXIT.ok
}
