import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { SwarmInfo } from '../../ports/swarm-api.js'
import type { CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import type { LaunchedStep } from './steps.js'
import { STATUS_EXITS, SwarmScreen } from './view.js'

/** No timer is longer. */
const LONGEST_MS = 2 ** 31 - 1

type KnownLease = ConstructorParameters<typeof SwarmScreen>[1]

/**
 * Follows a swarm to its end; returns the exit code of its status. A swarm without a coordinator is followed until its
 * deadline.
 */
export async function followSwarm(context: CommandContext, id: string, known: KnownLease): Promise<number> {
  const view = new SwarmScreen(context.output, known)
  const overdue = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let others: Promise<readonly string[]> = Promise.resolve([])
  try {
    for await (const event of context.api().watch('swarm.watch', { id }, { signal: overdue.signal })) {
      view.take(event)
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
      if (event.type !== 'done') continue
      if (!context.output.json)
        await view.summary(event, known.launched === null ? undefined : await deadlineOf(context, id))
      return STATUS_EXITS[event.status]
    }
  } catch (error) {
    if (overdue.signal.aborted) throw left(id)
    if (error instanceof NodeError && error.code === 'NODE_NOT_RUNNING') throw stopped(id, await others)
    throw error
  } finally {
    clearTimeout(timer)
    view.close()
  }
  throw overdue.signal.aborted ? left(id) : stopped(id, await others)
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

/** Follows a swarm that this command launched: Ctrl-C cancels it and waits for its end, a second one quits at once. */
export async function followOwnSwarm(context: CommandContext, id: string, launched: LaunchedStep): Promise<number> {
  let isCanceled = false
  const cancel = (): void => {
    if (isCanceled) process.exit(EXIT.interrupted)
    isCanceled = true
    context.output.note('canceling the swarm; Ctrl-C again quits without waiting')
    context
      .api()
      .call('swarm.cancel', { id })
      .then((info) => {
        if (info.willBeCanceled === true) context.output.note(cancelingText(info))
      })
      .catch((error: unknown) => {
        context.output.note(`it could not be canceled: ${error instanceof Error ? error.message : String(error)}`)
      })
  }
  process.on('SIGINT', cancel)
  try {
    const code = await followSwarm(context, id, { total: launched.request.items?.length ?? null, launched })
    return isCanceled ? EXIT.interrupted : code
  } finally {
    process.off('SIGINT', cancel)
  }
}
