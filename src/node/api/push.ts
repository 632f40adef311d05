import { NodeError } from '../../kit/errors.js'
import type { Calls } from '../../ports/node-api.js'
import type { PushAdmin } from '../../ports/push-api.js'

type Row<N extends 'push.list' | 'push.retry'> = readonly ['admin', (params: Calls[N]['params']) => Promise<Calls[N]['result']>]

/** The calls about push notifications: of all callers' tasks, so for who is in charge of the node. */
export function pushCalls({ push }: { push(): PushAdmin | null }): {
  readonly 'push.list': Row<'push.list'>
  readonly 'push.retry': Row<'push.retry'>
} {
  const admin = (): PushAdmin => {
    const found = push()
    if (found !== null) return found
    const next = ['a2a-node start --http <[host:]port>']
    throw new NodeError('CONFLICT', 'this node serves A2A neither over HTTP nor to members, so it sends no push notifications', { next })
  }
  return {
    'push.list': ['admin', async () => await admin().list()],
    'push.retry': [
      'admin',
      async ({ id, all = false }) => {
        if ((id === undefined) !== all) throw new NodeError('USAGE', 'name one notification, or all that were given up')
        return { ids: await admin().retry(id ?? null) }
      }
    ]
  }
}
