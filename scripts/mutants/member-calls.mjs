// One-line faults in the turns of calls of members, and of their reads. Part of the list in list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const MEMBER_CALL_MUTANTS = [
  {
    name: 'budget off: answers to calls of a member take no turns',
    file: 'src/node/gateway/mesh/inbound-calls.ts',
    find: '!(await call.hasTurn()) || call.signal.aborted',
    put: 'call.signal.aborted',
    test: 'node/gateway/mesh/inbound-calls',
    title: 'of a member that reads nothing one answer is made'
  },
  {
    name: 'budget off: calls that are over read on',
    file: 'src/node/gateway/mesh/inbound-calls.ts',
    find: "    if (!(await this.hasTurn())) throw new NodeError('CHANNEL_CLOSED', 'the call is over')",
    put: '    await this.hasTurn()',
    test: 'node/gateway/mesh/inbound-calls',
    title: 'calls whose member hangs up before their turn read nothing'
  },
  {
    name: 'budget off: reads for answers of members do not count',
    file: 'src/node/gateway/mesh/inbound-calls.ts',
    find: '    this.#readBytes += bytes',
    put: '    this.#readBytes = 0',
    test: 'node/gateway/mesh/inbound-calls',
    title: 'bytes that were read for an answer count like sent ones'
  },
  {
    name: 'budget off: contents of tasks are read for members at once',
    file: 'src/node/gateway/task-log.ts',
    find: '    await turn?.take()\n    const bytes = await this.#deps.ledger.get',
    put: '    const bytes = await this.#deps.ledger.get',
    test: 'node/gateway/task-log',
    title: 'a reader that may be slow is given records in small reads'
  },
  {
    name: 'budget off: a stream that waits for its reader keeps the turn',
    file: 'src/node/gateway/mesh/inbound-calls.ts',
    find: '    if (this.#unread >= CALL_WINDOW_BYTES) this.rest()\n',
    put: '',
    test: 'node/gateway/mesh/inbound-calls',
    title: 'a stream whose caller reads slowly leaves the turn'
  }
]
