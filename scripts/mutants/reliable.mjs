// One-line faults in reliable delivery. Part of the list in list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const RELIABLE_MUTANTS = [
  {
    name: 'a copy that came while its node was stopping is unknown for good',
    file: 'src/node/requests/callee/record.ts',
    find: 'if (isStopped(record)) return responseOf(payload, ENDINGS.stopped)',
    put: '',
    test: 'node/requests/callee/record',
    title: 'a copy that came while its node was stopping is answered as the one before'
  },
  {
    name: 'a message is acknowledged before it is committed',
    file: 'src/node/reliable/lane-receiver.ts',
    find: '      const value = receiverRecord.encode(',
    put: '      this.step({ type: "committed", seq: last.seq, messageId: last.messageId })\n      const value = receiverRecord.encode(',
    test: 'node/reliable/lanes',
    title: 'through crashes around every commit, full disks and cut links, every recorded message is delivered, once'
  },
  {
    name: 'what is acknowledged is the largest number seen',
    file: 'src/domain/reliable/lane-receiver.ts',
    find: 'if (message.seq !== nextOf(lane)) {',
    put: 'if (message.seq < nextOf(lane)) {',
    test: 'domain/reliable/lanes',
    title: 'every message arrives once and in order, after any losses, repeats, reorders and crashes'
  },
  {
    name: 'a lane does not acknowledge again the last message that it took',
    file: 'src/domain/reliable/lane-receiver.ts',
    find: 'if (message.seq <= lane.contig) return acknowledge(lane)',
    put: 'if (message.seq < lane.contig) return acknowledge(lane)',
    test: 'domain/reliable/lanes',
    title: 'a message that comes again after its commit is acknowledged again'
  },
  {
    name: 'a request that is recorded already is recorded anew',
    file: 'src/node/requests/callee/record.ts',
    find: 'if (isNew && ledgerQuota.refusal === null) {',
    put: 'if (before !== undefined) {',
    test: 'node/requests/durable',
    title:
      'a request that was done is not done again after a restart of its node, for any sender of a copy: it gets the outcome'
  },
  {
    name: 'how a request ended is not in the commit of its answer',
    file: 'src/node/requests/callee/replies.ts',
    find: 'changes: () => changes }',
    put: 'changes: () => [] }',
    test: 'node/requests/durable',
    title:
      'a request that was done is not done again after a restart of its node, for any sender of a copy: it gets the outcome'
  },
  {
    name: 'a message is recorded without what goes with it',
    file: 'src/node/reliable/lane-sender.ts',
    find: 'commit([...changes, ...this',
    put: 'commit([...this',
    test: 'node/requests/durable',
    title: 'a caller that is killed while it waits learns the outcome after its restart'
  },
  {
    name: 'a queued request is not durable before that is said',
    file: 'src/node/requests/caller/requests.ts',
    find: '    await request.sending.keep()\n    this.#dispatcher.queue(request)\n',
    put: '    this.#dispatcher.queue(request)\n',
    test: 'node/requests/durable',
    title: 'a request to a node that is away waits through restarts of its caller'
  },
  {
    name: 'an answer is acknowledged without what it says',
    file: 'src/node/messaging/inbound.ts',
    find: '...this.#deps.records.onReply(arrival)',
    put: '...this.#deps.records.onReply(arrival), changes: []',
    test: 'node/requests/durable',
    title: 'a late outcome is recorded and can be read, also after a restart'
  },
  {
    name: 'a lane does not say which numbers come no more',
    file: 'src/domain/reliable/lane-sender.ts',
    find: 'return live[0]?.seq ?? acked + 1',
    put: 'return live.length === 0 ? acked + 1 : 1',
    test: 'domain/reliable/lanes',
    title: 'a message that expires holds up none behind it'
  },
  {
    name: 'a lane takes any acknowledgement for the answer to its greeting',
    file: 'src/domain/reliable/lane-sender.ts',
    find: "if (lane.link === 'greeting' && input.isAnswer === false)",
    put: "if (lane.link === 'greeting' && input.ack < 0)",
    test: 'domain/reliable/lanes',
    title: 'a message of a lost past that waits for its turn is not taken'
  },
  {
    name: 'what may not be repeated is begun before that is durable',
    file: 'src/node/requests/callee/runner.ts',
    find: 'if (!record.isRepeatable || isLeft) return await commit.',
    put: 'if (record.isRepeatable || isLeft) return await commit.',
    test: 'node/requests/callee/executor.durable',
    title: 'unrepeatable work does not begin before that is durable'
  },
  {
    name: 'what may not be repeated is begun again after its node was killed',
    file: 'src/domain/reliable/request.ts',
    find: 'if (!mayRunAgain({ isRepeatable: request.isRepeatable, isUndone: false }))',
    put: 'if (!mayRunAgain({ isRepeatable: true, isUndone: false }))',
    test: 'node/requests/durable',
    title: 'unrepeatable work ends as unknown when its node is killed at it, with the reason; it is not begun again'
  },
  {
    name: 'requests are removed before they expire',
    file: 'src/node/requests/store.ts',
    find: "rangeUpTo('request-expiry', now)",
    put: "rangeUpTo('request-expiry', now + 20)",
    test: 'node/requests/store',
    title: 'nothing of a request is removed before it expires, and all of it then'
  },
  {
    name: 'a node begins as many lanes as it likes',
    file: 'src/node/reliable/lane-receiver.ts',
    find: 'begun.size < MAX_BEGUN',
    put: 'begun.size < MAX_BEGUN * 1000',
    test: 'node/requests/callee/executor.durable',
    title: 'a node may begin a bounded number of lanes: it cannot fill the ledger with them, and existing ones continue'
  },
  {
    name: 'messages that wait for others are bounded lane by lane only',
    file: 'src/node/reliable/lane-receiver.ts',
    find: 'isNext ? MAX_BUDGET_BYTES : MAX_GAP_BYTES',
    put: 'Infinity',
    test: 'node/reliable/lanes',
    title: 'the buffers of the lanes of one node together are bounded, delay no next message, and end with its link'
  },
  {
    name: 'a request is not asked for on a new path before its next try',
    file: 'src/domain/reliable/request.ts',
    find: ': dueAt > now',
    put: ': false',
    test: 'domain/reliable/request',
    title: 'an outcome that is not known is asked for as soon as its node is back, also long before the next try'
  },
  {
    name: 'a wait goes on though the wall clock was put back',
    file: 'src/domain/reliable/request.ts',
    find: '(now >= request.retryAt || now < request.updatedAt)',
    put: 'now >= request.retryAt',
    test: 'domain/reliable/request',
    title: 'a clock that is put back holds up nothing'
  },
  {
    name: 'a request that has an end waits for room again',
    file: 'src/node/requests/caller/request.ts',
    find: 'if (this.outcome.isSettled) return\n    const { clock',
    put: 'const { clock',
    test: 'node/requests/caller/record',
    title: 'an end in one commit with a refusal for lack of space, before or behind it, is the end'
  },
  {
    name: 'the record of work that has begun and may not be repeated goes with a refusal of its copy',
    file: 'src/node/requests/callee/replies.ts',
    find: " || (record.status === 'started' && !record.isRepeatable && !hasRun)",
    put: '',
    test: 'node/requests/callee/replies',
    title: 'unrepeatable work that has begun stays on record, also when a copy of it is refused'
  },
  {
    name: 'asking after a request begins it',
    file: 'src/node/requests/callee/executor.ts',
    find: '    if (payload.isQuery) return void this.#tell(thread, asked, payload)\n',
    put: '',
    test: 'node/policy/approvals.queries',
    title: 'a query that the rules let pass does not begin what waits for a person'
  },
  {
    name: 'asking after a request waits for a person',
    file: 'src/node/requests/callee/executor.ts',
    find: 'payload.isQuery || ',
    put: '',
    test: 'node/policy/approvals.queries',
    title: 'a query about finished work needs no approval: it gets the outcome, and never a failure'
  },
  {
    name: 'what runs may be repeated because another capability under its id may be',
    file: 'src/node/requests/callee/record.ts',
    find: 'before.isRepeatable && this',
    put: 'before.isRepeatable || this',
    test: 'node/requests/callee/record',
    title: 'a run may be repeated only when its capability says so, for any other content under its id'
  },
  {
    name: 'a damaged record holds up its lane',
    file: 'src/node/requests/callee/record.ts',
    find: "if (asNodeError(error).code !== 'STORE_DAMAGED') throw error",
    put: 'throw error',
    test: 'node/requests/callee/record',
    title: 'a request whose record is damaged ends as unknown'
  },
  {
    name: 'a request that ended as unknown is decided on anew at each start',
    file: 'src/node/requests/recovery.ts',
    find: "    if (next === 'nothing') return\n",
    put: '',
    test: 'node/requests/recovery',
    title: 'a request that ended while it waited to be taken up after a start stays as it ended'
  },
  {
    name: 'a lane whose record is damaged takes numbers that are in use',
    file: 'src/node/reliable/lane-messages.ts',
    find: '(messages.at(-1)?.seq ?? 0) + 1',
    put: '1',
    test: 'node/reliable/lane-messages',
    title: 'a lane with a damaged record goes on behind its stored messages'
  },
  {
    name: 'what has expired by a clock that jumped is removed at once',
    file: 'src/node/requests/recovery.ts',
    find: 'const now = this.#expiry.now()',
    put: 'const now = this.#deps.clock.now()',
    test: 'node/requests/recovery',
    title: 'a clock that is set forward for a while, and back, takes nothing away before its time; one that stays does'
  },
  {
    name: 'a node waits for the card of a sender that was put out',
    file: 'src/node/requests/recovery.ts',
    find: '!directory.isPutOut(source.nodeId) && ',
    put: '',
    test: 'node/requests/recovery',
    title:
      'requests of members removed while this node was down end: none of them runs, and they are not looked at again'
  },
  {
    name: 'an answer to a node that was put out goes on a lane',
    file: 'src/node/messaging/outbound.ts',
    find: ' || directory.isPutOut(recipient.nodeId)',
    put: '',
    test: 'node/requests/recovery',
    title: 'an answer that could not be recorded before its caller was put out leaves no lane behind'
  },
  {
    name: 'one copy of a request that was not done ends it while another is under way',
    file: 'src/node/requests/caller/reply-reader.ts',
    find: 'isOfOneCopy(answer) && !sending.copies.denied()',
    put: 'isOfOneCopy(answer) && sending.copies.denied() === null',
    test: 'node/requests/caller/request',
    title: 'a word of the peer that it did not do one copy of a request'
  },
  {
    name: 'an end that the ledger did not take is shown',
    file: 'src/node/requests/caller/outcome.ts',
    find: 'if (isKept && !isNow) tell()',
    put: 'if (!isNow) tell()',
    test: 'node/requests/caller/outcome',
    title: 'a waiting caller gets a result that the ledger refuses; it is shown when the ledger accepts it'
  },
  {
    name: 'an end that a start decides is shown before it is on disk',
    file: 'src/node/requests/callee/executor.ts',
    find: '    let isKept = true\n    for (const [at',
    put: '    if (task) this.#deps.tasks.restore(task.task, task.events, true)\n    let isKept = true\n    for (const [at',
    test: 'node/requests/recovery',
    title:
      'a request without an end when its node stopped is shown as ended once that is on disk, not while the disk is full'
  },
  {
    name: 'an end that the ledger did not take is never recorded',
    file: 'src/node/requests/caller/outcome.ts',
    find: 'if (!isKept) this.#deps.ends.add({ changes, notify: isNow ? () => {} : tell })',
    put: '',
    test: 'node/requests/durable',
    title: 'an end that a caller decides by itself while its disk is full'
  },
  {
    name: 'a request that was canceled while its answer was not taken has no end on disk',
    file: 'src/node/requests/caller/outcome.ts',
    find: '    if (this.#fallbackEnd !== null) void this.finish(this.#fallbackEnd, true)\n',
    put: '',
    test: 'node/requests/durable',
    title: 'a request that is canceled while the answer to it is not taken by a full disk'
  },
  {
    name: 'a cancellation is told while an answer is being recorded',
    file: 'src/node/requests/caller/outcome.ts',
    find: '    if (this.isSettled) this.#fallbackEnd ??= answer\n    else void',
    put: '    void',
    test: 'node/requests/caller/outcome.cancel',
    title: 'a request that is canceled while its answer is written ends by that answer'
  },
  {
    name: 'what was sent before is called not done by a node that lost its disk',
    file: 'src/node/requests/callee/record.ts',
    find: '  if (isAgain) return ENDINGS.lateInDoubt\n',
    put: '',
    test: 'node/requests/durable.late',
    title:
      'work begun before its node was killed and lost its disk is not reported as not done, when it comes too late a second time'
  },
  {
    name: 'what a node lost with its disk is begun again, though it may not be repeated',
    file: 'src/node/requests/caller/request.ts',
    find: 'await this.send(this.#record?.current.isRepeatable === false)',
    put: 'await this.send(false)',
    test: 'node/requests/durable',
    title: 'a node that lost its disk does not begin unrepeatable work again after it had acknowledged it'
  },
  {
    name: 'that a request may be repeated is forgotten with its caller',
    file: 'src/node/requests/caller/record.ts',
    find: '...(allowRepeat === true ? { allowRepeat } : {})',
    put: '...{}',
    test: 'node/requests/durable',
    title: 'that a request may be repeated by the word of its caller'
  },
  {
    name: 'a try counts that the disk of the caller did not take',
    file: 'src/node/requests/caller/record.ts',
    find: 'if (this.#current === asked) this.#current = before',
    put: 'if (this.#current === asked) this.#current = asked',
    test: 'node/requests/durable',
    title: 'a try that the disk of the caller did not take'
  },
  {
    name: 'what could not be recorded as begun has failed',
    file: 'src/node/requests/callee/runner.ts',
    find: 'return await commit.catch(notBegun)',
    put: 'return await commit',
    test: 'node/requests/callee/executor.durable',
    title: 'unrepeatable work finds no place while its node cannot record its start, and begins once it can'
  },
  {
    name: 'what goes with a message is decided before its turn',
    file: 'src/node/messaging/outbound.ts',
    find: 'return lanes.record({ source: sender, target: recipient }, message, () => reliable.changes())',
    put: 'const before = reliable.changes()\n    return lanes.record({ source: sender, target: recipient }, message, () => before)',
    test: 'node/requests/durable',
    title: 'a lease that its full lane refuses makes no ledger changes'
  },
  {
    name: 'a node does not start when one record is damaged',
    file: 'src/node/requests/store.ts',
    find: "if (asNodeError(error).code !== 'STORE_DAMAGED') throw error",
    put: 'throw error',
    test: 'node/requests/recovery',
    title: 'a node starts though a record is damaged'
  },
  {
    name: 'what was given up while it was read is sent all the same',
    file: 'src/node/reliable/lane-sender.ts',
    find: 'if (message !== undefined) this.#sendOne(message, envelope)',
    put: 'this.#sendOne(message ?? next, envelope)',
    test: 'node/reliable/lane-sender',
    title:
      'a message given up or acknowledged while it was read is not sent: its number is below the base that its receiver gets'
  },
  {
    name: 'a message that cannot be read now is taken for one that was given up',
    file: 'src/node/reliable/lane-sender.ts',
    find: 'else if (envelope === undefined) this.#wait(seq)',
    put: "else if (envelope === undefined) this.step({ type: 'give-up', messageIds: new Set([messageId]) })",
    test: 'node/reliable/lane-sender',
    title: 'a message that cannot be read is read again'
  },
  {
    name: 'a request that is being written when its time is over counts as not sent',
    file: 'src/node/requests/caller/sending.ts',
    find: 'return this.#isSent || this.#isLeaving || ',
    put: 'return this.#isSent || ',
    test: 'node/requests/durable',
    title: 'the outcome of a lease whose time ends while its message is written is unknown'
  },
  {
    name: 'a request that is canceled while it is looked up is begun',
    file: 'src/node/requests/callee/executor.ts',
    find: 'const payload = isCanceled ? null : this',
    put: 'const payload = this',
    test: 'node/requests/durable',
    title: 'a request that is canceled while its node looks it up'
  },
  {
    name: 'a request whose end waits for the disk is run once more when it comes again',
    file: 'src/node/requests/callee/executor.ts',
    find: '    for (const [at, thread] of claim.threads.entries()) isKept = ',
    put: '    this.#inFlight.release(claim)\n    for (const [at, thread] of claim.threads.entries()) isKept = ',
    test: 'node/requests/callee/executor.durable',
    title: 'while the end of a request cannot be recorded no further copy of it is run'
  },
  {
    name: 'a caller that was restarted has forgotten that its request was given back',
    file: 'src/node/requests/caller/record.ts',
    find: "return this.#current.status === 'pending' ? this.#current.error : null",
    put: 'return null',
    test: 'node/requests/durable.late',
    title: 'of a request that a stopping node gave back nobody says after a restart of its caller that nothing was sent'
  },
  {
    name: 'what was removed a moment ago, and is there again, is taken for new',
    file: 'src/adapters/storage/ledger/ledger-store.ts',
    find: 'if (isNew && value !== null && !values.has(key) &&',
    put: 'if (isNew && value !== null &&',
    test: 'adapters/storage/ledger/ledger-store',
    title: 'a written key that is removed, added as new and removed again before the next write stays removed'
  },
  {
    name: 'the number of commits is kept elsewhere only when the ledger closes',
    file: 'src/adapters/storage/ledger/durable-ledger.ts',
    find: 'this.#marking ??= this.#markSoon()',
    put: 'this.#marking ??= null',
    test: 'adapters/storage/ledger/durable-ledger.prove',
    title: 'a ledger that lost what was committed before its process was killed is found'
  },
  {
    name: 'numbers of a lane are changed while messages with the former ones are under way',
    file: 'src/domain/reliable/lane-sender.ts',
    find: "lane.link === 'up' || now < lane.keepsNumbersUntil",
    put: 'now < 0',
    test: 'domain/reliable/lanes',
    title: 'a receiver that never agrees has the numbers changed no more often than it is asked'
  },
  {
    name: 'a receiver that never agreed is never asked again',
    file: 'src/domain/reliable/lane-sender.ts',
    find: "Object.assign(lane, { link: 'greeting', askAt: now + ASK_BACKOFF.baseMs })",
    put: "Object.assign(lane, { link: 'greeting', askAt: null })",
    test: 'domain/reliable/lanes',
    title: 'also where its clock was put back meanwhile, all comes to rest: nothing waits for ever'
  },
  {
    name: 'lanes of a ledger that was put back go on with the numbers that they had',
    file: 'src/node/reliable/lanes.ts',
    find: 'if (isOlder && !(await out.renumber',
    put: 'if (isOlder === null && !(await out.renumber',
    test: 'node/reliable/lanes.tidy',
    title: 'lanes of a ledger that was put back go on behind all numbers that were used since'
  },
  {
    name: 'what a peer had begun has failed once the peer is put out',
    file: 'src/node/requests/caller/request.ts',
    find: 'const isKnown = this.isAwaited && !this.sending.hasLeft',
    put: 'const isKnown = true',
    test: 'node/requests/recovery',
    title:
      'work that a removed peer may have begun stays unknown for good, and a request that never left this node has failed'
  },
  {
    name: 'a start that ends before all lanes are numbered anew is taken for one that did it',
    file: 'src/node/reliable/lanes.ts',
    find: 'if (isOlder && isNumbered)',
    put: 'if (isOlder)',
    test: 'node/reliable/lanes.tidy',
    title: 'of a ledger that was put back all lanes are numbered anew, though a start ends while some are not'
  },
  {
    name: 'messages are dropped under their old numbers while a lane is numbered anew',
    file: 'src/node/reliable/lane-sender.ts',
    find: 'if (this.#numbering.defers(input)) return',
    put: '',
    test: 'node/reliable/lane-sender',
    title:
      'a message given up, acknowledged or expired while a lane is renumbered is dropped under its new number: the ledger equals the lane'
  },
  {
    name: 'a mark of the ledger tells of what a power cut may take after a clean stop',
    file: 'src/adapters/storage/ledger/durable-ledger.ts',
    find: 'const isSynced = this.#broken === null && (await this.#trySync())',
    put: 'const isSynced = this.#broken === null',
    test: 'adapters/storage/ledger/durable-ledger',
    title:
      'a commit that need only survive the process does not wait for the disk, and the next one that does takes it along'
  },
  {
    name: 'what a node said of the copy that it had is forgotten once no other copy got there',
    file: 'src/node/requests/caller/reply-reader.ts',
    find: 'outcome.fail(this.#ofOneCopy ?? sending.refusal',
    put: 'outcome.fail(sending.refusal',
    test: 'node/requests/caller/request',
    title:
      'a request with one copy at a node that stopped, and no other copy delivered, ends with the answer of that node'
  },
  {
    name: 'a commit that need only survive the process waits for the disk',
    file: 'src/adapters/storage/ledger/durable-ledger.ts',
    find: "group.some(({ survives }) => survives === 'power')",
    put: 'group.some(({ survives }) => survives !== undefined)',
    test: 'adapters/storage/ledger/durable-ledger',
    title: 'a commit that need only survive the process does not wait for the disk'
  }
]
