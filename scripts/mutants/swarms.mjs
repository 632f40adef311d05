// One-line faults in durable swarms. Part of the list in list.mjs.

const test = 'node/swarms/coordinator.durable'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const SWARM_MUTANTS = [
  {
    name: 'an item that a node which is put out may have begun is given to another one',
    file: 'src/node/swarms/lease-requests.ts',
    find: "new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED'])",
    put: "new Set(['CHANNEL_CLOSED'])",
    test: 'node/swarms/lease-requests.repeats',
    title:
      'an item that may not be repeated is not given to another node when the one that runs it is put out of the mesh'
  },
  {
    name: 'an outcome of a swarm is told before it is durable',
    file: 'src/node/ledger/commit-queue.ts',
    find: 'async () => this.#notify(await durable, notify))',
    put: 'async () => this.#notify(durable !== null, notify))',
    test: 'node/ledger/commit-queue',
    title: 'changes that a ledger refused for an hour are reported, in order, within 5 s after it accepts some again'
  },
  {
    name: 'the number of a lease is not recorded',
    file: 'src/node/swarms/coordinator.ts',
    find: 'changes: (lease) => [swarmStore.leased(head.id, lease)]',
    put: 'changes: () => []',
    test,
    title:
      'a swarm continues after its launcher was killed: finished items stay, running ones are not begun again, the rest is done'
  },
  {
    name: 'a lost item that may not be repeated goes to another agent',
    file: 'src/domain/swarm/leases.ts',
    find: 'if (!lease.item.isRepeatable) finishItem(',
    put: 'if (lease.item.attempt < 0) finishItem(',
    test,
    title: 'a worker that never comes back'
  },
  {
    name: 'a cut link takes back what may not be repeated',
    file: 'src/domain/swarm/machine.ts',
    find: 'if (lease.item.isRepeatable && isOf(lease.item, need)) release(',
    put: 'if (isOf(lease.item, need)) release(',
    test,
    title: 'a link that was only cut: unrepeatable work continues, and its result counts'
  },
  {
    name: 'what may not be repeated is taken from who is slow',
    file: 'src/domain/swarm/slow.ts',
    find: 'mayRunAgain({ isRepeatable, isUndone: false })',
    put: 'mayRunAgain({ isRepeatable, isUndone: true })',
    test,
    title: 'unrepeatable work is not taken from an agent that is slow'
  },
  {
    name: 'a worker that starts again forgets that it was at what may not be repeated',
    file: 'src/node/requests/recovery.ts',
    find: "record.swarm !== null && next !== 'unknown'",
    put: 'record.swarm !== null',
    test,
    title: 'a launcher and its worker are killed: unrepeatable work ends as unknown, repeatable work is done again'
  },
  {
    name: 'a lease that may not be repeated is begun by whoever never saw it',
    file: 'src/node/swarms/lease-requests.ts',
    find: 'isQuery: isResumed && !isRepeatable',
    put: 'isQuery: false',
    test,
    title: 'a worker that lost its disk as well does not begin again'
  },
  {
    name: 'a worker stops what may not be repeated when its launcher is away',
    file: 'src/node/requests/callee/in-flight.ts',
    find: 'piece.payload.swarm !== null && piece.record?.isRepeatable !== false',
    put: 'piece.payload.swarm !== null',
    test,
    title: 'a link that was only cut: unrepeatable work continues, and its result counts'
  },
  {
    name: 'an idempotency key is looked for by nobody',
    file: 'src/node/swarms/launcher.ts',
    find: 'if (known === null) return await',
    put: 'if (known !== undefined) return await',
    test,
    title: 'an idempotency key names one swarm'
  },
  {
    name: 'a key takes any request',
    file: 'src/node/swarms/launcher.ts',
    find: 'known.key?.fingerprint === wanted.key.fingerprint',
    put: 'known.key !== wanted.key',
    test,
    title: 'an idempotency key names one swarm'
  },
  {
    name: 'two launches of one key at once are two swarms',
    file: 'src/node/swarms/launcher.ts',
    find: 'const before = this.#launching.get(key.name) ?? Promise.resolve()',
    put: 'const before = Promise.resolve()',
    test,
    title: 'an idempotency key names one swarm'
  },
  {
    name: 'who works for a swarm that has ended is not told to stop',
    file: 'src/node/swarms/swarm-table.ts',
    find: 'for (const { index, attempt } of strays) this.#deps',
    put: 'for (const { index, attempt } of strays.slice(0, 0)) this.#deps',
    test,
    title: 'a canceled swarm stays canceled after a restart, and workers that missed it get the order to stop'
  },
  {
    name: 'a lease that ended before it left is recorded over the next one',
    file: 'src/node/swarms/lease-requests.ts',
    find: 'if (this.#leases.get(open.lease.index) !== open) throw',
    put: 'if (this.#leases.size < 0) throw',
    test: 'node/swarms/lease-requests',
    title: 'the request of an expired lease is not recorded over the next lease of its item'
  },
  {
    name: 'an item that may be repeated ends in doubt',
    file: 'src/domain/reliable/repeat.ts',
    find: "return isUnknown && !isRepeatable ? 'unknown' : 'failed'",
    put: "return isUnknown ? 'unknown' : 'failed'",
    test: 'domain/swarm/machine',
    title: 'repeatable work is never in doubt: an answer without a known outcome fails it when its retries are over'
  },
  {
    name: 'what may not be repeated is tried again after any failure',
    file: 'src/domain/reliable/repeat.ts',
    find: 'return isRepeatable || isUndone',
    put: 'return isRepeatable || !isUndone || isUndone',
    test: 'node/swarms/lease-requests.repeats',
    title: 'an item that may not be repeated runs once'
  },
  {
    name: 'a timeout passes for a failure that did nothing',
    file: 'src/domain/reliable/repeat.ts',
    find: 'const isKnown = retryable && !ERROR_CODES[code].retryable',
    put: 'const isKnown = retryable',
    test: 'domain/reliable/repeat',
    title:
      'unrepeatable work ends failed after a run, unknown without a known outcome, and is tried again where nothing was done'
  },
  {
    name: 'what its agent cannot say whether it was done has failed',
    file: 'src/domain/task/outcome.ts',
    find: "if (status === 'unknown') return { status, error: {",
    put: "if (status === 'unknown') return { status: 'failed', error: {",
    test: 'node/swarms/lease-requests.repeats',
    title:
      'unrepeatable work with an unknown outcome ends unknown and runs once, as a call of it does; else it is tried again'
  },
  {
    name: 'work that its time limit ended and that may go on elsewhere has failed',
    file: 'src/adapters/agents/files/hosted-agent.ts',
    find: 'isUnknown ? { ...ended.by, isUnknown } : ',
    put: '',
    test: 'adapters/agents/files/hosted-agent',
    title: 'after its time nobody can say whether it was done, where the runtime says so'
  },
  {
    name: 'retryable: false is not heard',
    file: 'src/domain/task/outcome.ts',
    find: 'retryable === false ? { ...error, isFinal: true }',
    put: 'retryable === null ? { ...error, isFinal: true }',
    test: 'node/swarms/lease-requests.repeats',
    title: 'a failure with retryable: false is not tried again, for any capability and launcher'
  },
  {
    name: 'retries are not counted',
    file: 'src/domain/reliable/repeat.ts',
    find: 'if (isCounted && failures >= retries) return end',
    put: 'if (isCounted && failures > retries) return end',
    test: 'domain/reliable/repeat',
    title: 'only safe work is repeated, never a final failure or one over its retries, never too early or too late'
  },
  {
    name: 'a caller is told to try again what may not be repeated',
    file: 'src/domain/reliable/repeat.ts',
    find: '? notRetryable(error) : error',
    put: '? error : error',
    test: 'node/swarms/lease-requests.repeats',
    title: 'an item that may not be repeated runs once'
  },
  {
    name: 'retryAfter is not waited for',
    file: 'src/domain/swarm/leases.ts',
    find: 'if (afterMs > 0) state.resting',
    put: 'if (afterMs < 0) state.resting',
    test: 'node/swarms/lease-requests.repeats',
    title: 'retryAfter is waited for, though another worker is free'
  },
  {
    name: 'a clock that is put back prolongs the rest of an item',
    file: 'src/node/swarms/restore.ts',
    find: 'Math.min(atOf(rest.until), now + rest.ms)',
    put: 'atOf(rest.until)',
    test: 'node/swarms/lease-requests.repeats',
    title: 'an item that rests waits no longer because the clock of its launcher was put back'
  },
  {
    name: 'retryAfter ends with the launcher',
    file: 'src/node/swarms/lease-requests.ts',
    find: '...lease, rest, ...(leasedAt',
    put: '...lease, ...(leasedAt',
    test: 'node/swarms/lease-requests.repeats',
    title: 'a launcher that is killed or stopped while an item rests waits on'
  },
  {
    name: 'a request is sent again before the time that its node named',
    file: 'src/node/requests/caller/sending.ts',
    find: 'Math.max(waitMs, retryAfterMs(error))',
    put: 'waitMs',
    test: 'node/requests/durable',
    title:
      'a request that waits for a place is not sent before the time that its node names, nor after a restart of its caller'
  },
  {
    name: 'the time that a node named ends with its caller',
    file: 'src/node/requests/caller/record.ts',
    find: "if (status !== 'pending' || retryAt === null",
    put: "if (status === 'pending' || retryAt === null",
    test: 'node/requests/durable',
    title:
      'a request that waits for a place is not sent before the time that its node names, nor after a restart of its caller'
  },
  {
    name: 'an item goes from one that only heartbeats to the next',
    file: 'src/domain/swarm/schedule.ts',
    find: 'item.takeovers === 0 ? [] : free.filter(',
    put: 'item.takeovers >= 0 ? [] : free.filter(',
    test: 'domain/swarm/simulation',
    title: 'an item whose agent only sends heartbeats goes to one that brings results, though it was lost there before'
  },
  {
    name: 'a sub-task is built on a result before that is durable',
    file: 'src/node/swarms/outcomes.ts',
    find: 'content: change.value }, notify })',
    put: 'content: change.value }, notify: () => {} })\n    notify()',
    test: 'node/swarms/stages.strategies.property',
    title:
      'Feature: a2a-mcp-protocols, Property 26: Swarm sub-task assignment and state consistency, for every strategy'
  },
  {
    name: 'half of the votes are a majority',
    file: 'src/domain/swarm/graph.ts',
    find: 'same.count * 2 > stage.count',
    put: 'same.count * 2 >= stage.count',
    test: 'domain/swarm/graph',
    title: 'vote: the result is that of more than half, for any order of its keys; it is decided as soon as it can be'
  },
  {
    name: 'a bad result wins a race',
    file: 'src/domain/swarm/graph.ts',
    find: "if (status === 'completed') {",
    put: "if (status !== 'skipped') {",
    test: 'domain/swarm/graph',
    title: 'race: the first good result wins'
  },
  {
    name: 'templates reach prototypes',
    file: 'src/kit/template/fill.ts',
    find: 'isRecord(at) && Object.hasOwn(at, key)',
    put: 'isRecord(at) && key in at',
    test: 'kit/template/fill',
    title: 'only own members are reached'
  },
  {
    name: 'what nobody can do is waited for to the deadline',
    file: 'src/domain/swarm/lacking.ts',
    find: 'const LACKING_LEASES = 12',
    put: 'const LACKING_LEASES = 12_000',
    test: 'domain/swarm/lacking',
    title:
      'items without an agent are given up after twelve lease spans; the rest continues, and an agent that comes in time gets them'
  },
  {
    name: 'one agent gives two answers of a vote',
    file: 'src/domain/swarm/schedule.ts',
    find: 'if (one !== index) items[one]?.barred.push(agent)',
    put: 'if (one === index) items[one]?.barred.push(agent)',
    test: 'domain/swarm/lacking',
    title: 'of items of one group no agent does two'
  },
  {
    name: 'a coordinator accepts without a lease',
    file: 'src/domain/swarm/coordination-candidate.ts',
    find: "state.phase === 'asking' || now < leaseEnd(state) ?",
    put: "state.phase === 'asking' || now > 0 ?",
    test: 'domain/swarm/coordination-candidate',
    title: 'a candidate without a lease accepts nothing, for any records of a majority'
  },
  {
    name: 'a voter records for whoever says so: the epoch is not checked',
    file: 'src/domain/swarm/coordination-vote.ts',
    find: 'if (epoch !== state.epoch || from !== state.candidate) return',
    put: 'if (epoch < 0) return',
    test: 'domain/swarm/coordination-vote',
    title: 'outcomes are recorded for the coordinator of the epoch granted last alone'
  },
  {
    name: 'a grant is told before it is durable',
    file: 'src/domain/swarm/coordination-vote.ts',
    find: 'return [store(state, []), granted]',
    put: 'return [granted, store(state, [])]',
    test: 'domain/swarm/coordination-vote',
    title: 'a grant is durable before it is sent, and so is a record'
  },
  {
    name: 'the lease of a coordinator counts from the answer',
    file: 'src/domain/swarm/coordination-candidate.ts',
    find: 'return granted(state, { from, sentAt: sent.at, now })',
    put: 'return granted(state, { from, sentAt: now, now })',
    test: 'domain/swarm/coordination-candidate',
    title: 'a lease counts from when a majority was asked, not from when it answered'
  },
  {
    name: 'a voter that lost its disk votes at once',
    file: 'src/domain/swarm/coordination-vote.ts',
    find: 'if (state.recovery !== null) return []',
    put: 'if (state.recovery === undefined) return []',
    test: 'domain/swarm/coordination-vote',
    title: 'a voter that lost its disk abstains for a lease, then learns from enough others, and only then votes'
  }
]
