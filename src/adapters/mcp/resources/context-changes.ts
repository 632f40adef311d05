import { createHash } from 'node:crypto'
import type { Unsubscribe } from '../../../kit/events.js'
import { SharedChanges } from './followed-watch.js'
import type { MeshContext } from './mesh-context.js'

/** Changes of one list of the servers' resources or prompts: agents that change otherwise are none. */
export class ContextChanges extends SharedChanges<void> {
  /** `read`: the list as clients see it. */
  constructor(context: Pick<MeshContext, 'onChange'>, read: () => Promise<unknown>) {
    super((tell) => follow(context, read, tell))
  }
}

function follow(context: Pick<MeshContext, 'onChange'>, read: () => Promise<unknown>, tell: () => void): Unsubscribe {
  let last: string | null = null
  let isLooking = false
  let isDue = false
  let isEnded = false
  const end = context.onChange(() => void look())
  void look()
  return () => {
    isEnded = true
    end()
  }

  /** One look at a time; however many changes come meanwhile, one more follows. */
  async function look(): Promise<void> {
    isDue = true
    if (isLooking) return
    isLooking = true
    while (isDue && !isEnded) {
      isDue = false
      const now = await hashOf(read)
      if (last !== null && now !== null && now !== last && !isEnded) tell()
      last = now ?? last
    }
    isLooking = false
  }
}

/** null: it cannot be read now. */
async function hashOf(read: () => Promise<unknown>): Promise<string | null> {
  try {
    return createHash('sha256')
      .update(JSON.stringify(await read()))
      .digest('base64url')
  } catch {
    return null
  }
}
