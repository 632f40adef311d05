import { asNodeError, messageOf, NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { SwarmInfo, SwarmResults } from '../../ports/swarm-api.js'
import type { CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { plural } from '../terminal/render.js'
import type { ResultFiles } from './result-files.js'
import { printCompleted, type ResultsForm } from './results.js'
import { STATUS_EXITS, type KnownLaunch, type SwarmDone, SwarmScreen } from './view.js'

/** No timer is longer. */
const LONGEST_MS = 2 ** 31 - 1

/** A swarm to follow: its launch and its number of items, where they are known, and the form of its results. */
interface FollowOptions extends KnownLaunch {
  /** Default: a table for a swarm of this command line, else none. */
  readonly results?: ResultsForm
  readonly files?: ResultFiles | null
  /** More failed items than these end the swarm. Default: no limit. */
  readonly maxFailures?: number | undefined
  /** Called once when there are more. */
  onTooManyFailures?(): void
}

/**
 * Follows a swarm to its end; returns the exit code of its status. A swarm without a coordinator is followed until its
 * deadline.
 */
export async function followSwarm(context: CommandContext, id: string, known: FollowOptions): Promise<number> {
  const view = new SwarmScreen(context.output, known)
  const limit = known.maxFailures === undefined ? Number.POSITIVE_INFINITY : known.maxFailures + 1
  const overdue = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let end: FollowedEnd | null = null
  let others: Promise<readonly string[]> = Promise.resolve([])
  try {
    for await (const event of context.api().watch('swarm.watch', { id }, { signal: overdue.signal })) {
      if (event.type === 'done') end = { done: event, ...(await resultsOf(context, id)) }
      view.take(event, end?.results ?? null)
      if (end !== null) break
      if (event.type === 'item' && (event.status === 'failed' || event.status === 'unknown') && ++failures === limit)
        known.onTooManyFailures?.()
      // Asked while the node is there to say.
      if (event.type === 'coordinator') others = othersOf(context, id)
      if (event.type === 'status') {
        clearTimeout(timer)
        if (event.status === 'stalled' && event.reason !== undefined) {
          const { deadlineAt } = await context.api().call('swarm.show', { id })
          timer = setTimeout(
            () => overdue.abort(),
            Math.min(LONGEST_MS, Math.max(0, Date.parse(deadlineAt) - Date.now()))
          )
        }
      }
    }
  } catch (error) {
    if (overdue.signal.aborted) throw left(id)
    if (error instanceof NodeError && error.code === 'NODE_NOT_RUNNING') throw stopped(id, await others)
    throw error
  } finally {
    clearTimeout(timer)
    view.close()
  }
  if (end === null) throw overdue.signal.aborted ? left(id) : stopped(id, await others)
  await conclude(context, { ...end, view }, known)
  return STATUS_EXITS[end.done.status]
}

/** The last event of a swarm with its results; null, and the reason, where the node does not give them. */
interface FollowedEnd {
  readonly done: SwarmDone
  readonly results: SwarmResults | null
  readonly fault: unknown
}

/**
 * Prints or writes the summary of an ended swarm and its results.
 * @throws NodeError of the missing results, where `--results json` or `files` asks for them
 */
async function conclude(
  context: CommandContext,
  { view, done, results, fault }: FollowedEnd & { readonly view: SwarmScreen },
  known: FollowOptions
): Promise<void> {
  const { output } = context
  const { launched, results: { form } = { form: launched === null ? 'none' : 'table' }, files = null } = known
  if (results === null) await files?.discard()
  const written = files === null || results === null ? null : await files.write(results)
  if (!output.json) {
    const people = form === 'json' ? output.toNotes() : output
    await view.summary(done, launched === null ? undefined : await deadlineOf(context, done.id), people)
    if (form === 'json' && results !== null) output.object('swarm-results@1', results)
    if (form === 'table' && results !== null) await printCompleted(output, results)
    const place = files === null || written === null ? '' : `${plural(written, 'file')} in ${shown(files.directory)}; `
    people.print(`results: ${place}${output.hint(`a2a-node swarm results ${shown(done.id)}`)}`)
  }
  if (results === null && (files !== null || form === 'json')) throw noResults(done.id, fault)
}

/** The results of an ended swarm; null when the node stopped meanwhile. */
async function resultsOf({ api }: CommandContext, id: string): Promise<Pick<FollowedEnd, 'results' | 'fault'>> {
  try {
    return { results: await api().call('swarm.results', { id }), fault: null }
  } catch (fault) {
    return { results: null, fault }
  }
}

function noResults(id: string, fault: unknown): NodeError {
  const { code, message } = asNodeError(fault)
  return new NodeError(code, `swarm ${shown(id)} has ended, and its results cannot be read: ${message}`, {
    cause: fault,
    next: [`a2a-node swarm results ${shown(id)}`]
  })
}

function left(id: string): NodeError {
  const message = `the deadline of swarm ${id} is over and it has no coordinator: it ends once a majority of its participants connect`
  return new NodeError('TIMEOUT', message, {
    next: ['a2a-node peers', `a2a-node swarm watch ${id}`, `a2a-node swarm cancel ${id}`]
  })
}

/**
 * Milliseconds that a swarm had: the default is a setting of its launcher's node. Never rejects; undefined: not known.
 */
async function deadlineOf({ api }: CommandContext, id: string): Promise<number | undefined> {
  try {
    const { createdAt, deadlineAt } = await api().call('swarm.show', { id })
    const ms = Date.parse(deadlineAt) - Date.parse(createdAt)
    return ms > 0 ? ms : undefined
  } catch {
    return undefined
  }
}

/** Names of the other nodes that can coordinate a swarm; none where its launcher alone does. Never rejects. */
async function othersOf({ api }: CommandContext, id: string): Promise<readonly string[]> {
  try {
    const [{ coordination }, { node }] = await Promise.all([
      api().call('swarm.show', { id }),
      api().call('node.info', {})
    ])
    return coordination?.participants.filter((name) => name !== node.name) ?? []
  } catch {
    return []
  }
}

function stopped(id: string, others: readonly string[]): NodeError {
  const [other] = others
  if (other !== undefined) {
    const names = others.map((name) => shown(name, 64))
    return new NodeError(
      'NODE_NOT_RUNNING',
      `the node stopped before swarm ${id} was done; the swarm goes on at another (${names.join(', ')})`,
      {
        next: [`a2a-node swarm watch ${id}   # on ${shown(other, 64)}`, 'a2a-node start']
      }
    )
  }
  return new NodeError(
    'NODE_NOT_RUNNING',
    `the node stopped before swarm ${id} was done; the swarm goes on when the node runs again`,
    {
      next: ['a2a-node start', `a2a-node swarm watch ${id}`]
    }
  )
}

/** The state of a request to cancel a swarm that other nodes must cancel. */
export function cancelingText({ coordination }: Pick<SwarmInfo, 'coordination'>): string {
  const coordinator = coordination?.coordinator ?? null
  return coordinator === null
    ? 'it will be canceled when a majority is back'
    : `it will be canceled by ${shown(coordinator, 64)}`
}

/** Asks the node to cancel a swarm, and notes what follows. Never rejects. */
async function requestCancel({ api, output }: CommandContext, id: string): Promise<void> {
  try {
    const info = await api().call('swarm.cancel', { id })
    if (info.willBeCanceled === true) output.note(cancelingText(info))
  } catch (error) {
    output.note(`it could not be canceled: ${messageOf(error)}`)
  }
}

/**
 * Follows a swarm that this command launched; `launched` is null for a retry. Ctrl-C and too many failures cancel it
 * and wait for its end, a second Ctrl-C quits at once.
 */
export async function followOwnSwarm(
  context: CommandContext,
  id: string,
  { launched, ...forms }: Omit<FollowOptions, 'total'>
): Promise<number> {
  let isCanceled = false
  const onInterrupt = (): void => {
    if (isCanceled) process.exit(EXIT.interrupted)
    isCanceled = true
    context.output.note('canceling the swarm; Ctrl-C again quits without waiting')
    cancel()
  }
  const onTooManyFailures = (): void => {
    if (isCanceled) return
    context.output.note(`more than ${forms.maxFailures ?? 0} items failed: canceling the swarm`)
    cancel()
  }
  const cancel = (): void => void requestCancel(context, id)
  process.on('SIGINT', onInterrupt)
  try {
    const code = await followSwarm(context, id, {
      total: launched?.request.items?.length ?? null,
      launched,
      ...forms,
      onTooManyFailures
    })
    return isCanceled ? EXIT.interrupted : code
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}
