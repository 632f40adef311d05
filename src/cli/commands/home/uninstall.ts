import { asNodeError, NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import { CLIENTS } from '../../clients/places.js'
import {
  type ClientPlan,
  clientPlan,
  editedText,
  findEntry,
  type FoundEntry,
  isThere,
  writeEdit
} from '../../clients/plan.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isSet, type Options } from '../../options.js'
import { commandText, runCommand, serviceFile, uninstallService } from '../../service/service.js'
import { type InstalledService, installedServices, removeStep } from '../../service/installed.js'
import { serviceDirs, type ServicePlan } from '../../service/service-plan.js'
import type { Output } from '../../terminal/output.js'
import { agreed } from '../../terminal/agreed.js'
import { ownService, thisHost } from './service.js'

/** An entry of this program in the file of a client. */
interface OwnEntry {
  readonly plan: ClientPlan
  readonly found: FoundEntry
}

/** The data of this program outside the home. */
interface Outside {
  readonly entries: readonly OwnEntry[]
  readonly service: ServicePlan | null
  /** Services of other homes, and of the machine: they stay. */
  readonly others: readonly InstalledService[]
  /** Reasons for which files of clients, or that of the service, cannot be read. */
  readonly unread: readonly string[]
}

/** `uninstall`: lists the entries in clients and the service of this home, asks, and removes them. */
export const uninstall: Action = async (context, _args, options) => {
  const { output } = context
  const outside = await outsideOf(context, options)
  const { entries, service, others, unread } = outside
  const { home } = context.paths()
  const files = [...entries.map(({ plan }) => plan.place.file), ...(service === null ? [] : [service.file])]
  if (!output.json) printOutside(output, outside)
  const isDone = files.length > 0 && !isSet(options, 'dryRun')
  if (isDone && !(await agreed(output, options, { question: 'remove them?' })))
    throw new NodeError('CANCELED', 'nothing was removed', { next: ['a2a-node uninstall --dry-run'] })
  if (isDone) await removeAll(outside)
  if (output.json) output.object('uninstall@1', { files, unread, others, home, removed: isDone })
  else {
    output.print(isDone ? 'removed' : files.length === 0 ? 'nothing outside the home' : 'nothing was removed')
    for (const other of others) {
      output.print(`Another service stays: ${shown(other.file, 4096)}`)
      output.print(`  try: ${removeStep(other)}`)
    }
    output.print(`The home stays: ${shown(home, 4096)}`)
    output.print(`  try: ${output.hint('a2a-node reset --dry-run')}`)
    output.print('  try: npm uninstall --global a2a-node')
  }
  return unread.length === 0 ? EXIT.ok : EXIT.failed
}

async function outsideOf(context: CommandContext, options: Options): Promise<Outside> {
  const entries: OwnEntry[] = []
  const unread: string[] = []
  for (const client of CLIENTS) {
    const plan = clientPlan(context, options, client)
    if (!isThere(plan)) continue
    try {
      const found = await findEntry(plan)
      if (found.state === 'same' || found.state === 'outdated') entries.push({ plan, found })
    } catch (error) {
      unread.push(asNodeError(error).message)
    }
  }
  const service = await foundService(context).catch((error: unknown) => {
    unread.push(asNodeError(error).message)
    return null
  })
  const installed = await installedServices(serviceDirs(thisHost(context.env)))
  return { entries, unread, service, others: installed.filter(({ file }) => file !== service?.file) }
}

async function foundService(context: CommandContext): Promise<ServicePlan | null> {
  const service = ownService(context)
  const state = service === null ? 'absent' : await serviceFile(service)
  return state === 'same' || state === 'outdated' ? service : null
}

/** Edits each file of a client as `connect --remove` does, with a copy beside it. */
async function removeAll({ entries, service }: Outside): Promise<void> {
  for (const { plan, found } of entries) await writeEdit(found, editedText(plan, found, true), 'a2a-node uninstall')
  if (service !== null) await uninstallService(service, runCommand)
}

function printOutside(output: Output, { entries, service, unread }: Outside): void {
  for (const { plan } of entries)
    output.print(`removes ${plan.name} from ${shown(plan.place.file, 4096)} (${plan.client.title})`)
  if (service !== null) {
    output.print(`removes ${shown(service.file, 4096)}`)
    for (const command of [...service.uninstall, ...service.forget]) output.print(`runs    ${commandText(command)}`)
  }
  for (const reason of unread) output.note(`warning: ${shown(reason, 1000)}`)
}
