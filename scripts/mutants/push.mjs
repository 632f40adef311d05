// One-line faults in push notifications. Part of the list in list.mjs.

const shares = {
  file: 'src/domain/gateway/push-shares.ts',
  test: 'domain/gateway/push-shares',
  title:
    'configs and waiting events stay within the shares of their callers, and every event is in a waiting notification, after any steps'
}

/** @type {readonly import('./list.mjs').Mutant[]} */
export const PUSH_MUTANTS = [
  {
    name: 'what waits for one webhook grows as long as its caller has room',
    find: 'own >= bounds.waitingOfHook ||',
    put: '',
    ...shares
  },
  {
    name: 'a notification that may be under way gives its place',
    find: 'own < bounds.least',
    put: 'own < 1',
    ...shares,
    title: 'each webhook keeps three notifications of its own though its caller is at its limit'
  },
  {
    name: 'what a commit placed that failed is counted for good',
    find: 'countWaiting(shares, share, -share.draft.added)',
    put: '',
    ...shares
  },
  {
    name: 'what one caller was not told of pushes out what others were not',
    file: 'src/node/gateway/push/dead-letters.ts',
    find: 'if (own !== undefined && own.size > MAX_DEAD_LETTERS_OF_ONE) return own',
    put: '',
    test: 'node/gateway/push/bounds',
    title: 'undelivered notifications of one caller push out none of others; its own oldest is dropped, and counted'
  }
]
