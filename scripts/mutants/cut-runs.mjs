// One-line faults in what becomes of requests that ran when their node ended. Part of the list in list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const CUT_RUN_MUTANTS = [
  {
    name: 'a request that ended its node runs at each start',
    file: 'src/domain/reliable/request.ts',
    find: "return request.cuts >= MAX_CUTS ? 'suspect' : 'run'",
    put: "return 'run'",
    test: 'node/requests/callee/cut-runs',
    title: 'a request at whose run its node ended twice is not run a third time'
  },
  {
    name: 'a request that ended its node by an error runs again',
    file: 'src/domain/reliable/request.ts',
    find: 'cuts: isAtFault ? Math.max(MAX_CUTS, request.cuts) : request.cuts + 1',
    put: 'cuts: isAtFault ? request.cuts + 1 : request.cuts + 1',
    test: 'node/requests/callee/cut-runs',
    title: 'after an error of the node itself no earlier run is repeated; requests that had not begun run'
  },
  {
    name: 'requests of which one ended its node run again all at once',
    file: 'src/node/requests/callee/cut-runs.ts',
    find: 'return this.#turn !== null && this.isWaiting(name)',
    put: 'return this.#turn !== null && this.isWaiting(name) && false',
    test: 'node/requests/callee/cut-runs',
    title: 'of many that ran when their node ended one runs at a time'
  },
  {
    name: 'a request that perhaps ended its node is begun by a copy before its turn',
    file: 'src/node/requests/callee/executor.ts',
    find: 'if (standing.isEarly) this.#ends.leave',
    put: 'if (standing.isEarly && false) this.#ends.leave',
    test: 'node/requests/callee/cut-runs',
    title: 'a copy of a request that comes before its turn begins nothing'
  },
  {
    name: 'a request that perhaps ended its node begins again before that is on disk',
    file: 'src/node/requests/callee/runner.ts',
    find: 'if (!record.isRepeatable || isLeft) return',
    put: 'if (!record.isRepeatable || (isLeft && false)) return',
    test: 'node/requests/callee/cut-runs',
    title: 'a request without an end when its node ended begins only when that is on disk'
  }
]
