// One-line faults in how a request ends when its node stops, is restored or is put out of the mesh. Part of the list in
// list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const OUTCOME_MUTANTS = [
  {
    name: 'a time with a fraction is later than all others',
    file: 'src/domain/reliable/keys.ts',
    find: 'String(Math.floor(number))',
    put: 'String(number)',
    test: 'domain/reliable/keys',
    title: 'keys are in the order of their numbers, for any fractions'
  },
  {
    name: 'a node that stops begins what is being recorded',
    file: 'src/node/requests/callee/executor.ts',
    find: 'if (this.#isStopping) return this.#ends.leave(request, record)',
    put: '',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a request that is being recorded when its node stops'
  },
  {
    name: 'a restore does once more what a node asked of itself',
    file: 'src/domain/reliable/restored.ts',
    find: 'nodeOfAddress(record.source) === nodeOfAddress(record.target) ?',
    put: 'nodeOfAddress(record.source) !== nodeOfAddress(record.target) ?',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a request to an agent of its own node, which waited when a backup was made, is not done twice by a restore'
  },
  {
    name: 'an A2A task waits for what nobody will ever tell',
    file: 'src/node/requests/caller/outcome.ts',
    find: 'retryAt === null ? { ...doubt, isFinal: true as const } : doubt',
    put: 'doubt',
    test: 'node/requests/caller/outcome.attacks',
    title: 'an A2A task ends when nobody will ever learn its outcome'
  },
  {
    name: 'an answer that is being recorded is lost when its peer is put out',
    file: 'src/node/requests/caller/request.ts',
    find: 'if (this.outcome.isSettled) return\n    const isKnown',
    put: 'const isKnown',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a peer that is put out while its answer is being recorded'
  },
  {
    name: 'what a revoked peer may have begun is an orphan',
    file: 'src/node/requests/recovery.ts',
    find: 'isGivenUp(record) || ',
    put: '',
    test: 'node/requests/caller/outcome.attacks',
    title: 'work that a removed peer may have begun is no orphan: it is unknown for good, over a restart too'
  },
  {
    name: 'requests for an agent that is attached later fail at the start',
    file: 'src/node/requests/recovery.ts',
    find: ' || this.#isForNobody(waiting)',
    put: '',
    test: 'node/requests/caller/outcome.attacks',
    title: 'requests for an agent that a program attaches wait for it'
  },
  {
    name: 'what was accepted before a start is given up for want of a place',
    file: 'src/node/requests/callee/executor.ts',
    find: "payload?.code === 'OVERLOADED' && incoming",
    put: "payload?.code === 'CANCELED' && incoming",
    test: 'node/requests/caller/outcome.attacks',
    title: 'a request accepted before a start waits for a place after it, and is not given up for later ones'
  },
  {
    name: 'a wall clock that jumps ends what waits on a lane',
    file: 'src/kit/clock.ts',
    find: 'if (monotonic - this.#aheadSince < STAYED_MS) return expected',
    put: '',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a wall clock that is ahead for a moment'
  },
  {
    name: 'the end of a run whose result fits no message is not recorded',
    file: 'src/node/requests/callee/replies.ts',
    find: 'await this.refused(thread, error, true)',
    put: 'await this.refused(thread, error, false)',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a result that fits no message has failed at both ends'
  },
  {
    name: 'a result that fits no message is listed as completed',
    file: 'src/node/requests/callee/runner.ts',
    find: 'if (unfit !== null) tasks.fail(piece.taskId, unfit)\n    else if',
    put: 'if',
    test: 'node/requests/caller/outcome.attacks',
    title: 'a result that fits no message has failed at both ends'
  },
  {
    name: 'a restart forgets what an own agent said of its end',
    file: 'src/node/requests/caller/request.ts',
    find: "if (record.status === 'unknown' && record.retryAt === null && !record.isRepeatable) return",
    put: '',
    test: 'node/requests/caller/outcome.attacks',
    title: 'the reason of an agent of this node for an unknown outcome stays the same over a restart'
  },
  {
    name: 'a query counts as a copy of its request',
    file: 'src/node/requests/caller/reply-reader.ts',
    find: 'isOfOneCopy(answer) && (this.#making.record?.current.isRepeatable !== false || isByNeighbour(answer.error))',
    put: 'isOfOneCopy(answer)',
    test: 'node/requests/caller/request',
    title: 'a request that may not be repeated, of which its peer was asked how it stands'
  },
  {
    name: 'a late answer to a query ends a request that was sent again',
    file: 'src/node/requests/caller/sending.ts',
    find: 'this.#staleQueries += this.#queries',
    put: '',
    test: 'node/requests/caller/request',
    title: 'a request that may not be repeated, of which its peer was asked how it stands'
  }
]
