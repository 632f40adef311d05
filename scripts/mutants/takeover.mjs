// One-line faults in how nodes follow the rule of coordination. Part of the list in list.mjs.

const test = 'node/swarms/consensus/replicated-swarm.takeover'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const TAKEOVER_MUTANTS = [
  {
    name: 'a coordinator accepts without a lease: an outcome is told before a majority has it',
    file: 'src/node/swarms/consensus/leadership.ts',
    find: 'if (!(await accepted) || this.#isOver) return\n      if (record !== undefined)',
    put: 'if (record !== undefined)',
    test,
    title:
      'an isolated coordinator has nothing accepted any more, for any results of its own agent; when it is back it has the results of the others'
  },
  {
    name: 'a worker begins leases of any epoch',
    file: 'src/node/swarms/consensus/participants.ts',
    find: 'epoch < swarm.epoch',
    put: 'epoch < 0',
    test,
    title: 'a worker does not begin what a coordinator of a lower epoch leases'
  },
  {
    name: 'what may not be repeated is leased before a majority knows of it',
    file: 'src/node/swarms/lease-requests.ts',
    find: 'term !== null && !isRepeatable && !(await',
    put: 'term !== null && isRepeatable && !(await',
    test,
    title: 'unrepeatable work continues at the remaining nodes: only runs on the lost launcher end as unknown'
  },
  {
    name: 'any member hears of the leases of a swarm',
    file: 'src/node/requests/callee/record.ts',
    find: '!isParticipant && !nodes.every((node) => amongVoters.includes(node))',
    put: 'nodes.length === 0',
    test: 'node/requests/callee/record.prior-request',
    title:
      'requests of another node are not disclosed to a node that is no voter, begins something, or names no lease of the swarm'
  },
  {
    name: 'a node that lost its disk votes as if it never had',
    file: 'src/node/swarms/consensus/joining.ts',
    find: "state: ledger === null ? 'invited' : 'lost'",
    put: "state: ledger === '' ? 'lost' : 'invited'",
    test,
    title: 'a participant that lost its disk votes only when'
  },
  {
    name: 'what was never accepted stays with the results',
    file: 'src/node/swarms/consensus/committed-results.ts',
    find: 'changes.push(...(await this.#missing(name, content)))',
    put: 'changes.push()',
    test,
    title:
      'an isolated coordinator has nothing accepted any more, for any results of its own agent; when it is back it has the results of the others'
  },
  {
    name: 'who takes over tells what is accepted before it is durable there',
    file: 'src/node/swarms/consensus/participant.ts',
    find: 'if (this.#unstored > 0 || !isCoordinating',
    put: 'if (!isCoordinating',
    test: 'node/swarms/consensus/replicated-swarm.takeover',
    title: 'a new coordinator reports no accepted result before it is durable there'
  },
  {
    name: 'that items were leased counts among what a participant waits for',
    file: 'src/node/swarms/consensus/committed-results.ts',
    find: '!isMark(this.#items, index) && !this.#digests',
    put: '!this.#digests',
    test: 'node/swarms/consensus/committed-results.records',
    title: 'a participant that knows of leases knows no more than one that does not: the end is whole for both'
  },
  {
    name: 'who only takes part in swarms forgets none of them',
    file: 'src/node/swarms/lifecycle.ts',
    find: '    else tasks.fail(taskId, outcome.error)\n    memory.evict()',
    put: '    else tasks.fail(taskId, outcome.error)',
    test: 'node/swarms/consensus/replicated-swarm.takeover',
    title: 'a participant keeps the newest hundred swarms in memory; its ledger has all others'
  },
  {
    name: 'what was accepted while its coordinator stepped back is never told there',
    file: 'src/node/swarms/consensus/committed-results.ts',
    find: 'index < head.itemCount && !eventLog.rows.has(index)',
    put: 'index < 0 && !eventLog.rows.has(index)',
    test: 'node/swarms/consensus/committed-results',
    title:
      'a result accepted while its coordinator stepped back, and not reported by it, is reported as accepted by others'
  },
  {
    name: 'a participant that has learned again what it lost abstains at every start',
    file: 'src/node/swarms/consensus/invitations.ts',
    find: "if (this.#record.state !== 'lost') return",
    put: "if (this.#record.state !== 'open') return",
    test,
    title: 'a participant that has learned again what it lost votes after its next start'
  },
  {
    name: 'a seat is kept though its records have expired',
    file: 'src/node/swarms/swarm-table.ts',
    find: 'run.head.expiresAt <= now) await run.expire()',
    put: 'run.head.expiresAt < 0) await run.expire()',
    test,
    title: 'a swarm without a majority is let go when all that is known of it expires'
  },
  {
    name: 'an accepted outcome that is not there is passed over by who takes over',
    file: 'src/node/swarms/consensus/committed-results.ts',
    find: 'if (mark === null && row?.index !== name.index) throw',
    put: 'if (mark === null && row?.index === -1) throw',
    test,
    title: 'a node that cannot read the accepted results leaves it to another to coordinate'
  },
  {
    name: 'who cannot go on with a swarm holds on to it',
    file: 'src/node/swarms/consensus/leadership.ts',
    find: 'if (!isOver()) participant.retreat()',
    put: 'if (isOver()) participant.retreat()',
    test,
    title: 'a node that cannot read the accepted results leaves it to another to coordinate'
  },
  {
    name: 'a late vote takes the place of the outcome that was told',
    file: 'src/node/swarms/consensus/participant.ts',
    find: 'content === undefined || this.#swarm.isVoid(name)',
    put: 'content === undefined',
    test: 'node/swarms/consensus/participant',
    title: 'a vote that becomes durable late does not replace the outcome that was reported meanwhile'
  },
  {
    name: 'plans that are offered push out those that are on their way',
    file: 'src/node/swarms/consensus/joining.ts',
    find: 'lastSeenAt <= since',
    put: 'lastSeenAt > since - PLAN_IDLE_MS',
    test: 'node/swarms/consensus/joining',
    title: 'more large plans than memory allows at once all arrive, for any number of repeated offers'
  },
  {
    name: 'the wish to cancel a swarm that nobody coordinates is forgotten',
    file: 'src/node/swarms/consensus/leadership.ts',
    find: 'if (request !== null) void this.cancel(request)',
    put: 'if (request === null) void request',
    test: 'node/swarms/consensus/cancel-request',
    title: 'a swarm that is canceled while nobody coordinates it says so'
  },
  {
    name: 'a swarm is canceled after its deadline because somebody once wished it',
    file: 'src/node/swarms/consensus/cancel-request.ts',
    find: 'return this.#isTimely && this.#swarm.isAllowed() ? this.#request : null',
    put: 'return this.#swarm.isAllowed() ? this.#request : null',
    test: 'node/swarms/consensus/cancel-request',
    title:
      'the request to cancel a swarm is given up at its deadline: no coordinator is asked then, and no further request is accepted'
  },
  {
    name: 'who waits for a content that nobody can give keeps its lease for ever',
    file: 'src/node/swarms/consensus/participant.ts',
    find: 'now - this.#since >= STUCK_MS',
    put: 'now < this.#since',
    test,
    title: 'a new coordinator that waits for content which no node can give, though one had it, lets another try'
  },
  {
    name: 'who has all but the contents of what was accepted waits for those for ever',
    file: 'src/node/swarms/consensus/participant.ts',
    find: "phase === 'settling' || this.#beginning !== null",
    put: "phase === 'settling'",
    test,
    title: 'a new coordinator that waits for content which no node can give, though a majority had it, lets another try'
  },
  {
    name: 'who is granted a vote is shown as the coordinator, majority or not',
    file: 'src/domain/swarm/coordination-candidate.ts',
    find: 'voter.provenEpoch === voter.epoch && voter.candidate !== null',
    put: 'voter.candidate !== null',
    test: 'node/swarms/consensus/replicated-swarm.minority',
    title: 'two of four participants are no majority: both say that it is stalled, and name nobody who only stands'
  },
  {
    name: 'a node without a seat tells whoever names voters of its own',
    file: 'src/node/requests/callee/record.ts',
    find: 'record?.asking?.voters !== voters)',
    put: "voters === '')",
    test: 'node/requests/callee/record.prior-request',
    title: 'a node without a vote reports a run, active or done, to the voters named with the lease, and to no others'
  },
  {
    name: 'an end that was never accepted ends a swarm that went on without it',
    file: 'src/domain/swarm/coordination.ts',
    find: 'epoch > end.epoch',
    put: 'epoch > end.epoch + 1_000_000',
    test: 'domain/swarm/coordination-candidate',
    title: 'an end that was not accepted does not end a swarm of which a later coordinator has recorded more'
  },
  {
    name: 'an end is recorded in a new epoch together with what it tells of',
    file: 'src/domain/swarm/coordination-candidate.ts',
    find: 'hasEnd && index !== endIndex ? state.behindEnd',
    put: 'hasEnd && index < 0 ? state.behindEnd',
    test: 'domain/swarm/coordination-candidate',
    title: 'an end that may have been accepted is recorded before anything else'
  },
  {
    name: 'the outcomes that other participants made are not checked when they are read',
    file: 'src/node/swarms/store.ts',
    find: 'voters === undefined ? (decode(value)',
    put: 'voters !== null ? (decode(value)',
    test: 'node/swarms/store',
    title: 'an outcome that another participant made invalid, or of another item, is left out of the results'
  }
]
