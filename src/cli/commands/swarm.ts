import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { SwarmInfo } from '../../ports/swarm-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import type { Output, Style } from '../terminal/output.js'
import { type Cell, plural, printFacts, printTable } from '../terminal/render.js'
import { cancelingText, followSwarm } from '../swarm/follow.js'
import { printCombined, printResults } from '../swarm/results.js'
import { errorSteps } from '../swarm/steps.js'
import { failuresText, ruleText } from '../swarm/view.js'
import { agoText, timeText } from '../words.js'

const STYLES: Readonly<Record<SwarmInfo['status'], Style>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  partial: 'yellow',
  canceled: 'dim',
  stalled: 'yellow'
}

/** `swarm ls`. */
export const listSwarms: Action = async ({ output, api }) => {
  const { swarms } = await api().call('swarm.list', {})
  if (output.json) output.object('swarms@1', { swarms })
  else if (swarms.length === 0) output.print('no swarms')
  else {
    const now = Date.now()
    const rows = swarms.map((one): Cell[] => [
      one.id,
      { text: one.status, style: STYLES[one.status] },
      progressText(one),
      agoText(one.createdAt, now),
      one.goal
    ])
    await printTable(output, ['ID', 'STATUS', 'DONE', 'STARTED', 'GOAL'], rows)
  }
  return EXIT.ok
}

function progressText({ counts }: SwarmInfo): string {
  return `${counts.completed}/${counts.total}`
}

/** `swarm show <id>`. */
export const showSwarm: Action = async ({ output, api }, [id = '']) => {
  const info = await api().call('swarm.show', { id })
  if (output.json) output.object('swarm-info@1', info)
  else printSwarm(output, info)
  return EXIT.ok
}

function itemsText({ counts, running, waitingForApproval }: SwarmInfo): string {
  const waiting =
    waitingForApproval === 0 || waitingForApproval === null ? '' : `, ${waitingForApproval} waiting for approval`
  return `${counts.completed} of ${counts.total} done${failuresText(counts)}${running === null ? '' : `, ${running} running`}${waiting}`
}

function coordinationText({ coordinator, epoch, participants }: NonNullable<SwarmInfo['coordination']>): string {
  return `${coordinator ?? 'none'}${epoch === 0 ? '' : `, term ${epoch}`}; candidates ${participants.join(', ')}`
}

function canceledText({ node, caller, at }: NonNullable<SwarmInfo['canceledBy']>): string {
  return `by ${node.name}${caller === null ? '' : ` (${caller})`}, ${timeText(at)}`
}

function printSwarm(output: Output, info: SwarmInfo): void {
  output.print(`swarm ${output.paint('bold', shown(info.id))}   ${output.paint(STYLES[info.status], info.status)}`)
  printFacts(output, [
    ['goal', info.goal],
    ['capability', `${info.capability}, strategy ${info.strategy}`],
    ...(info.round === undefined
      ? []
      : [['round', `${info.round.number} of the loop that began with ${info.round.first}`] as const]),
    ...(info.stages.length < 2
      ? []
      : info.stages.map(
          (one) => ['sub-task', `${one.id}  ${one.status}${one.reason === '' ? '' : `: ${one.reason}`}`] as const
        )),
    ['items', itemsText(info)],
    info.coordination === undefined ? null : ['coordinator', coordinationText(info.coordination)],
    info.willBeCanceled === true ? ['cancel', cancelingText(info)] : null,
    info.canceledBy === undefined ? null : ['canceled', canceledText(info.canceledBy)],
    ['agents', info.participants.join(', ')],
    ['started', `${timeText(info.createdAt)}, ${formatDuration(info.durationMs)} long`],
    info.error === null ? null : ['error', { text: `${info.error.message}  [${info.error.code}]`, style: 'red' }],
    ...info.leftOut.map((one) => ['left out', `${one.agent}: ${ruleText(one)}`] as const)
  ])
  if (info.error !== null) for (const line of errorSteps(output, info.error)) output.print(line)
}

/** `swarm watch <id>`: follows it to its end; exits by its status. */
export const watchSwarm: Action = async (context, [id = '']) =>
  await followSwarm(context, id, {
    total: (await context.api().call('swarm.show', { id })).counts.total,
    launched: null
  })

/** `swarm results <id>`. */
export const swarmResults: Action = async ({ output, api }, [id = '']) => {
  const found = await api().call('swarm.results', { id })
  if (output.json) output.object('swarm-results@1', found)
  else {
    await printResults(output, found.results)
    printCombined(output, found)
    output.note(`${plural(found.results.length, 'result')}, swarm ${found.status}`)
  }
  return EXIT.ok
}

/** `swarm cancel <id>`. */
export const cancelSwarm: Action = async ({ output, api }, [id = '']) => {
  const info = await api().call('swarm.cancel', { id })
  if (output.json) output.object('swarm-info@1', info)
  else
    output.print(
      `swarm ${shown(info.id)} is ${info.status}${info.willBeCanceled === true ? `: ${cancelingText(info)}` : ''}`
    )
  return EXIT.ok
}
