import { NodeError } from '../kit/errors.js'
import type { CommandContext } from './context.js'
import { EXIT } from './exit-codes.js'
import type { Launched } from './swarm-steps.js'
import { STATUS_EXITS, SwarmView } from './swarm-view.js'

type Known = ConstructorParameters<typeof SwarmView>[1]

/** Follows a swarm to its end and shows it; gives the exit code of its status. */
export async function followSwarm(context: CommandContext, id: string, known: Known): Promise<number> {
  const view = new SwarmView(context.output, known)
  try {
    for await (const event of context.api().watch('swarm.watch', { id })) {
      view.take(event)
      if (event.type !== 'done') continue
      if (!context.output.json) await view.summary(event)
      return STATUS_EXITS[event.status]
    }
  } catch (error) {
    if (error instanceof NodeError && error.code === 'NODE_NOT_RUNNING') throw stopped(id)
    throw error
  } finally {
    view.close()
  }
  throw stopped(id)
}

function stopped(id: string): NodeError {
  return new NodeError('NODE_NOT_RUNNING', `the node stopped before swarm ${id} was done; the swarm goes on when the node runs again`, {
    next: ['a2a-node start', `a2a-node swarm watch ${id}`]
  })
}

/** Follows a swarm that this command launched: Ctrl-C cancels it and waits for its end, a second one quits at once. */
export async function followOwnSwarm(context: CommandContext, id: string, launched: Launched): Promise<number> {
  let isCanceled = false
  const cancel = (): void => {
    if (isCanceled) process.exit(EXIT.interrupted)
    isCanceled = true
    context.output.note('canceling the swarm; Ctrl-C again quits without waiting')
    context
      .api()
      .call('swarm.cancel', { id })
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
