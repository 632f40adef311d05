import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { Repair } from '../../maintenance/doctor-documents.js'
import type { DoctorCheck } from '../../maintenance/doctor-check.js'
import type { IdentityPlan, NewIdentity } from '../../maintenance/new-identity.js'
import type { Config } from '../../config/settings.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet, type Options, textOption } from '../options.js'
import { agreed } from '../terminal/agreed.js'
import type { Output, Style } from '../terminal/output.js'
import { foldedLines } from '../terminal/render.js'
import { doctorPeer } from './peer/doctor-peer.js'
import { startConfig } from '../start-settings.js'

const STYLES: Readonly<Record<DoctorCheck['result'], Style>> = { ok: 'green', warn: 'yellow', fail: 'red' }

/** Options without a peer. */
const OF_HOME: readonly string[] = ['repair', 'newIdentity', 'name', 'yes', 'force']

/**
 * `doctor`: faults of the home of a node and their next steps; with `--repair` or `--new-identity` it changes the home
 * first. `doctor <peer>`: see {@link doctorPeer}.
 */
export const doctor: Action = async (context, [peer], options) => {
  const { output } = context
  if (peer !== undefined) {
    if (Object.keys(options).some((name) => OF_HOME.includes(name)))
      throw usage('the options of doctor are for the home of this node; with a peer there are none')
    return await doctorPeer(context, peer)
  }
  const home = context.paths()
  const [{ diagnoseHome }, { repairHome }] = await Promise.all([
    import('../../maintenance/doctor.js'),
    import('../../maintenance/doctor-stores.js')
  ])
  checkOptions(options)
  const config = await configOf(context, options)
  const identity = isSet(options, 'newIdentity') ? await changeIdentity(context, config, options) : null
  const repairs = isSet(options, 'repair') ? await repairHome(home, Date.now()) : []
  const found = await diagnoseHome({ home, config, now: Date.now() })
  const checks = found.map((one) => ({ ...one, next: one.next.map((step) => output.hint(step)) }))
  const ok = checks.every((one) => one.result !== 'fail')
  if (output.json) output.object('doctor@1', { ok, checks, repairs, identity })
  else {
    if (identity !== null) printIdentity(output, identity)
    for (const one of repairs) printRepair(output, one)
    for (const one of checks) printCheck(output, one)
    if (isSet(options, 'repair') && repairs.length === 0) output.print('nothing to repair')
  }
  return ok ? EXIT.ok : EXIT.failed
}

/** @throws NodeError USAGE */
function checkOptions(options: Options): void {
  const isNew = isSet(options, 'newIdentity')
  if (isNew && isSet(options, 'repair'))
    throw usage(
      'a home gets a new identity (--new-identity) or replaces the other home of its node (--repair), not both'
    )
  if (!isNew && (isSet(options, 'yes') || isSet(options, 'force') || textOption(options, 'name') !== undefined))
    throw usage('--name, --yes and --force belong to --new-identity')
}

function usage(message: string): NodeError {
  return new NodeError('USAGE', message, { next: ['a2a-node doctor --help'] })
}

async function configOf(context: CommandContext, options: Options): Promise<Config | NodeError> {
  try {
    return await startConfig(context, options)
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}

function printRepair(output: Output, { name, text, lost }: Repair): void {
  output.print(`${output.paint('cyan', 'repaired')}  ${name}: ${shown(text, 1000)}`)
  if (lost !== null) output.print(`          lost: ${shown(lost, 1000)}`)
}

function printCheck(output: Output, { name, result, text, next }: DoctorCheck): void {
  const head = `${output.paint(STYLES[result], result.padEnd(4))}  ${name.padEnd(10)}`
  for (const line of foldedLines(output, shown(text, 1000), { head, column: Math.max(16, name.length + 6) }))
    output.print(line)
  for (const step of next) output.print(`      try: ${shown(step, 1000)}`)
}

/** `doctor --new-identity`: shows the plan, asks on a terminal, and makes the home that of a new node. */
async function changeIdentity(
  context: CommandContext,
  config: Config | NodeError,
  options: Options
): Promise<NewIdentity> {
  const { output } = context
  const question = 'make this home a node of its own?'
  const agrees = async (plan: IdentityPlan): Promise<boolean> => {
    if (!output.json) printPlan(output, plan)
    return await agreed(output, options, { question, flags: ['--yes'] })
  }
  const { giveNewIdentity } = await import('../../maintenance/new-identity.js')
  const changed = await giveNewIdentity(context.paths(), {
    name: textOption(options, 'name') ?? null,
    configured: config instanceof NodeError ? null : config.node.name,
    isForced: isSet(options, 'force'),
    now: Date.now(),
    agrees
  })
  if (changed === null) throw new NodeError('CANCELED', 'nothing was changed', { next: ['a2a-node doctor'] })
  return changed
}

/** Prints the changed home and the steps into a mesh. */
function printIdentity(output: Output, { name, movedTo }: NewIdentity): void {
  output.print(`This home is now the home of a new node, ${shown(name)}, which is in no mesh.`)
  output.print(
    `The data of the former node is in ${movedTo}, its private key included; remove it when the other home works.`
  )
  output.print('Join a mesh by an invite:')
  output.print(`  try: ${output.hint('a2a-node invite   # on a machine of an admin')}`)
  output.print(`  try: ${output.hint('a2a-node start --join -')}`)
}

function printPlan(output: Output, { home, former, name, reason, kept, dropped }: IdentityPlan): void {
  const node =
    former.name === null ? 'its node' : `the node ${shown(former.name)}${former.id === null ? '' : ` (${former.id})`}`
  output.print(`${home}: ${reason ?? 'nothing shows that it is a copy'}`)
  output.print(`new node  ${shown(name)}; another home of ${node} is not touched`)
  for (const text of kept) output.print(`keeps     ${shown(text, 1000)}`)
  for (const text of dropped) output.print(`drops     ${shown(text, 1000)}`)
}
