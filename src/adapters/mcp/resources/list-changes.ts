import { createHash } from 'node:crypto'
import type { Unsubscribe } from '../../../kit/events.js'
import { SharedChanges } from './followed-watch.js'

/** Calls back when something changed, the list perhaps. */
interface ChangingSource {
  onChange(changed: () => void): Unsubscribe
}

/** Changes of one list, for any number of listeners: other changes of the source are none. */
export class ListChanges extends SharedChanges<void> {
  /** `read`: the list as clients see it. */
  constructor(source: ChangingSource, read: () => Promise<unknown>) {
    super((tell) => follow(source, read, tell))
  }
}

function follow(source: ChangingSource, read: () => Promise<unknown>, tell: () => void): Unsubscribe {
  let last: string | null = null
  let isLooking = false
  let isDue = false
  let isEnded = false
  const end = source.onChange(() => void look())
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
